"""Tokenizer files: a vocabulary of bytes, and the special tokens behind it."""

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.checkpoints.json_files import write_json
from tests.checkpoints.specials import NUM_BYTES, TEMPLATES, FamilyName, Specials


def write_tokenizer(family: FamilyName, directory: Path, specials: Specials) -> None:
    """One token per byte, unused ones up to the special ones; in one file, or in Qwen's parts."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {c: i for i, c in enumerate(alphabet)}
    vocab |= {f"<unused_{i}>": i for i in range(NUM_BYTES, specials.first)}
    if family in ("llada", "llada2"):
        _save_whole(directory / "tokenizer.json", vocab, specials)
    else:
        _write_parts(family, directory, vocab, specials)


def write_tokenizer_config(family: FamilyName, directory: Path, specials: Specials) -> None:
    """What the special tokens are for, and the chat template."""
    added = {
        str(specials.first + i): {
            "content": token,
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": True,
        }
        for i, token in enumerate(specials.tokens)
    }
    end = "<|endoftext|>"
    settings: dict[str, Any] = {
        "added_tokens_decoder": added,
        "chat_template": TEMPLATES[family],
        "clean_up_tokenization_spaces": False,
        "eos_token": end,
        "pad_token": end,
    }
    if family in ("llada", "llada2"):
        kind = "PreTrainedTokenizerFast"
        settings |= {"bos_token": "<|startoftext|>", "tokenizer_class": kind}
    else:
        settings["tokenizer_class"] = "Qwen2Tokenizer" if family == "sdar" else "DreamTokenizer"
        if family == "dream":
            settings["auto_map"] = {"AutoTokenizer": ["tokenization_dream.DreamTokenizer", None]}
    write_json(directory / "tokenizer_config.json", settings)


def _save_whole(path: Path, vocab: dict[str, int], specials: Specials) -> None:
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(specials.tokens))
    tokenizer.save(str(path), pretty=False)


def _write_parts(
    family: FamilyName, directory: Path, vocab: dict[str, int], specials: Specials
) -> None:
    write_json(directory / "vocab.json", vocab)
    (directory / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    added = {token: specials.first + i for i, token in enumerate(specials.tokens)}
    if family == "sdar":  # this file spells the mask differently from tokenizer_config.json
        added = {("<MASK>" if t == "<|MASK|>" else t): i for t, i in added.items()}
    write_json(directory / "added_tokens.json", added)
