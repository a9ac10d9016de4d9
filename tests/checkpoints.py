"""Random checkpoints in the layouts that the families were released in.

``python -m tests.checkpoints DIR`` writes one of each family. Names, shapes, configuration keys and
file names are those of the released repositories, written down here independently of the adapters;
only sizes are small. With ``vocabulary="released"`` embeddings have all released rows and the
special tokens their released ids.
"""

import argparse
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

FamilyName = Literal["sdar", "llada2", "llada", "dream"]
VocabularyName = Literal["tiny", "released"]
FAMILY_NAMES: tuple[FamilyName, ...] = ("sdar", "llada2", "llada", "dream")
LENGTH = 8  # of a block, where a family leaves it open
NUM_BYTES = 256
SPARE_ROWS = 4  # embedding rows behind the last token, as all released models have some


@dataclass(frozen=True, slots=True, kw_only=True)
class Specials:
    """The special tokens behind the ordinary ones, first one first; ``rows`` of the embedding."""

    first: int
    tokens: tuple[str, ...]
    rows: int

    def id_of(self, token: str) -> int:
        return self.first + self.tokens.index(token)


CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ROLES = ("<role>", "</role>", "<|role_end|>")
HEADERS = ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
# Where released ids leave gaps, reserved tokens fill them.
TINY_TOKENS: dict[FamilyName, tuple[str, ...]] = {
    "sdar": (*CHATML, "<|MASK|>"),
    "llada2": ("<|startoftext|>", "<|endoftext|>", "<|mask|>", *ROLES),
    "llada": ("<|startoftext|>", "<|endoftext|>", "<|mdm_mask|>", *HEADERS),
    "dream": (*CHATML, "<|beginoftext|>", "<|mask|>"),
}


def _reserved(*tokens: tuple[int, str], first: int) -> tuple[str, ...]:
    """Tokens at their ids, counted from ``first``, with reserved ones between."""
    by_id = dict(tokens)
    return tuple(by_id.get(i, f"<|reserved_{i}|>") for i in range(first, max(by_id) + 1))


RELEASED_SPECIALS: dict[FamilyName, Specials] = {
    "sdar": Specials(
        first=151643,
        tokens=_reserved(
            (151643, CHATML[0]),
            (151644, CHATML[1]),
            (151645, CHATML[2]),
            (151669, "<|MASK|>"),
            first=151643,
        ),
        rows=151936,
    ),
    "llada2": Specials(
        first=156891,
        tokens=_reserved(
            (156891, "<|startoftext|>"),
            (156892, "<|endoftext|>"),
            (156895, "<|mask|>"),
            *((156899 + i, role) for i, role in enumerate(ROLES)),
            first=156891,
        ),
        rows=157184,
    ),
    "llada": Specials(
        first=126080,
        tokens=_reserved(
            (126080, "<|startoftext|>"),
            (126081, "<|endoftext|>"),
            (126336, "<|mdm_mask|>"),
            *((126346 + i, header) for i, header in enumerate(HEADERS)),
            first=126080,
        ),
        rows=126464,
    ),
    "dream": Specials(
        first=151643,
        tokens=_reserved(
            (151643, CHATML[0]),
            (151644, CHATML[1]),
            (151645, CHATML[2]),
            (151665, "<|beginoftext|>"),
            (151666, "<|mask|>"),
            first=151643,
        ),
        rows=152064,
    ),
}
MASKS = {"sdar": "<|MASK|>", "llada2": "<|mask|>", "llada": "<|mdm_mask|>", "dream": "<|mask|>"}
_CHATML_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEMPLATES = {
    "sdar": _CHATML_TEMPLATE,
    "dream": _CHATML_TEMPLATE,
    "llada": (
        "{% for m in messages %}{% if loop.first %}{{ bos_token }}{% endif %}<|start_header_id|>"
        "{{ m['role'] }}<|end_header_id|>\n\n{{ m['content'] | trim }}<|eot_id|>{% endfor %}"
        "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
    ),
    "llada2": (
        "<role>SYSTEM</role>detailed thinking off<|role_end|>{% for m in messages %}<role>"
        "{{ 'HUMAN' if m['role'] == 'user' else m['role'] | upper }}</role>{{ m['content'] }}"
        "<|role_end|>{% endfor %}{% if add_generation_prompt %}<role>ASSISTANT</role>{% endif %}"
    ),
}


def specials_of(family: FamilyName, vocabulary: VocabularyName = "tiny") -> Specials:
    """The special tokens of a checkpoint."""
    if vocabulary == "released":
        return RELEASED_SPECIALS[family]
    tokens = TINY_TOKENS[family]
    return Specials(first=NUM_BYTES, tokens=tokens, rows=NUM_BYTES + len(tokens) + SPARE_ROWS)


def write_released(
    family: FamilyName,
    directory: Path,
    *,
    vocabulary: VocabularyName = "tiny",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    shards: int = 2,
    **sizes: int,
) -> Path:
    """Write a checkpoint; ``sizes`` override entries of its configuration."""
    config = write_configuration(family, directory, vocabulary=vocabulary, **sizes)
    generator = torch.Generator().manual_seed(seed)
    shapes = _SHAPES[family](config)
    tensors = {n: _random(n, s, generator).to(dtype) for n, s in shapes.items()}
    _write_weights(directory, tensors, shards=shards)
    _write_tokenizer(family, directory, specials_of(family, vocabulary))
    return directory


def write_configuration(
    family: FamilyName, directory: Path, *, vocabulary: VocabularyName = "tiny", **sizes: Any
) -> dict[str, Any]:
    """Write what says what a checkpoint is, without weights and the ordinary vocabulary."""
    directory.mkdir(parents=True, exist_ok=True)
    specials = specials_of(family, vocabulary)
    config = _CONFIGS[family](specials) | sizes
    if vocabulary == "tiny":  # such rows are nobody's, so the checkpoint must say its own
        config |= {"mask_token_id": specials.id_of(MASKS[family])}
        if family in ("sdar", "llada2"):
            config |= {"block_size": LENGTH}
    _write_json(directory / "config.json", config)
    end = config["pad_token_id"]
    ends = [specials.id_of("<|im_end|>"), end] if family == "sdar" else end
    generation = {"eos_token_id": ends, "pad_token_id": end}
    _write_json(directory / "generation_config.json", generation)
    _write_tokenizer_config(family, directory, specials)
    return config


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _random(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Large enough that conditionals are sharp, whatever the width."""
    noise = torch.randn(shape, generator=generator)
    if "norm" in name.rpartition(".weight")[0].rpartition(".")[2] or name.endswith("ln_f.weight"):
        return 1.0 + 0.2 * noise
    if len(shape) == 1:
        return 0.05 * noise
    return 0.85 / math.sqrt(shape[1]) * noise


def _write_weights(directory: Path, tensors: Mapping[str, Tensor], *, shards: int) -> None:
    if shards == 1:
        save_file(dict(tensors), directory / "model.safetensors", metadata={"format": "pt"})
        return
    names = list(tensors)
    weight_map: dict[str, str] = {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        mine = names[number * len(names) // shards : (number + 1) * len(names) // shards]
        save_file({n: tensors[n] for n in mine}, directory / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(mine, file)
    total = sum(t.nbytes for t in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    _write_json(directory / "model.safetensors.index.json", index)


def _write_tokenizer(family: FamilyName, directory: Path, specials: Specials) -> None:
    """One token per byte, unused ones up to the special ones; in one file, or in Qwen's parts."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {c: i for i, c in enumerate(alphabet)}
    vocab |= {f"<unused_{i}>": i for i in range(NUM_BYTES, specials.first)}
    if family in ("llada", "llada2"):
        _save_whole(directory / "tokenizer.json", vocab, specials)
    else:
        _write_parts(family, directory, vocab, specials)


def _write_tokenizer_config(family: FamilyName, directory: Path, specials: Specials) -> None:
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
    _write_json(directory / "tokenizer_config.json", settings)


def _save_whole(path: Path, vocab: dict[str, int], specials: Specials) -> None:
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(specials.tokens))
    tokenizer.save(str(path), pretty=False)


def _write_parts(
    family: FamilyName, directory: Path, vocab: dict[str, int], specials: Specials
) -> None:
    _write_json(directory / "vocab.json", vocab)
    (directory / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    added = {token: specials.first + i for i, token in enumerate(specials.tokens)}
    if family == "sdar":  # this file spells the mask differently from tokenizer_config.json
        added = {("<MASK>" if t == "<|MASK|>" else t): i for t, i in added.items()}
    _write_json(directory / "added_tokens.json", added)


# --- configurations ---


def _sdar_config(specials: Specials) -> dict[str, Any]:
    end = specials.id_of("<|endoftext|>")
    return {
        "architectures": ["SDARForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_implementation": "flex_attention",
        "auto_map": {"AutoModelForCausalLM": "modeling_sdar.SDARForCausalLM"},
        "bos_token_id": end,
        "eos_token_id": end,
        "pad_token_id": end,
        "head_dim": 16,
        "hidden_act": "silu",
        "hidden_size": 48,
        "initializer_range": 0.02,
        "intermediate_size": 96,
        "max_position_embeddings": 256,
        "max_window_layers": 2,
        "model_type": "sdar",
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 1000000,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.52.4",
        "use_cache": False,
        "use_sliding_window": False,
        "vocab_size": specials.rows,
    }


def _dream_config(specials: Specials) -> dict[str, Any]:
    end = specials.id_of("<|endoftext|>")
    return {
        "architectures": ["DreamModel"],
        "attention_dropout": 0.0,
        "auto_map": {"AutoModel": "modeling_dream.DreamModel"},
        "bos_token_id": end,
        "eos_token_id": end,
        "hidden_act": "silu",
        "hidden_size": 64,
        "initializer_range": 0.02,
        "intermediate_size": 96,
        "mask_token_id": specials.id_of("<|mask|>"),
        "max_position_embeddings": 256,
        "max_window_layers": 2,
        "model_type": "Dream",
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": end,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 1000000.0,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.46.2",
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": specials.rows,
    }


def _llada_config(specials: Specials) -> dict[str, Any]:
    end = specials.id_of("<|endoftext|>")
    return {
        "activation_type": "silu",
        "alibi": False,
        "alibi_bias_max": 8.0,
        "architectures": ["LLaDAModelLM"],
        "attention_dropout": 0.0,
        "attention_layer_norm": False,
        "attention_layer_norm_with_affine": True,
        "auto_map": {"AutoModelForCausalLM": "modeling_llada.LLaDAModelLM"},
        "bias_for_layer_norm": False,
        "block_group_size": 1,
        "block_type": "llama",
        "d_model": 64,
        "embedding_dropout": 0.0,
        "embedding_size": specials.rows,
        "eos_token_id": end,
        "flash_attention": False,
        "include_bias": False,
        "include_qkv_bias": False,
        "init_device": "meta",
        "input_emb_norm": False,
        "layer_norm_type": "rms",
        "layer_norm_with_affine": True,
        "mask_token_id": specials.id_of("<|mdm_mask|>"),
        "max_sequence_length": 256,
        "mlp_hidden_size": 96,
        "mlp_ratio": 4,
        "model_type": "llada",
        "multi_query_attention": None,
        "n_heads": 4,
        "n_kv_heads": 4,
        "n_layers": 2,
        "pad_token_id": end,
        "precision": "amp_bf16",
        "residual_dropout": 0.0,
        "rms_norm_eps": 1e-05,
        "rope": True,
        "rope_full_precision": True,
        "rope_theta": 500000.0,
        "scale_logits": False,
        "transformers_version": "4.46.3",
        "use_cache": False,
        "vocab_size": specials.rows,
        "weight_tying": False,
    }


def _llada2_config(specials: Specials) -> dict[str, Any]:
    return {
        "architectures": ["LLaDA2MoeModelLM"],
        "attention_dropout": 0.0,
        "auto_map": {"AutoModelForCausalLM": "modeling_llada2_moe.LLaDA2MoeModelLM"},
        "embedding_dropout": 0.0,
        "first_k_dense_replace": 1,
        "head_dim": 16,
        "hidden_act": "silu",
        "hidden_size": 48,
        "initializer_range": 0.02,
        "intermediate_size": 96,
        "max_position_embeddings": 256,
        "max_window_layers": 2,
        "model_type": "llada2_moe",
        "moe_intermediate_size": 32,
        "moe_router_enable_expert_bias": True,
        "n_group": 4,
        "norm_head": False,
        "norm_softmax": False,
        "norm_topk_prob": True,
        "num_attention_heads": 4,
        "num_experts": 16,
        "num_experts_per_tok": 4,
        "num_hidden_layers": 3,
        "num_key_value_heads": 2,
        "num_shared_experts": 1,
        "output_dropout": 0.0,
        "output_router_logits": False,
        "pad_token_id": specials.id_of("<|endoftext|>"),
        "partial_rotary_factor": 0.5,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 600000,
        "rotary_dim": 8,
        "routed_scaling_factor": 2.5,
        "router_dtype": "fp32",
        "score_function": "sigmoid",
        "tie_word_embeddings": False,
        "topk_group": 2,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.52.3",
        "use_bias": False,
        "use_cache": False,
        "use_qk_norm": True,
        "use_qkv_bias": False,
        "use_rmsnorm": True,
        "use_sliding_window": False,
        "using_split_qkv_in_self_attention": False,
        "vocab_size": specials.rows,
    }


# --- names and shapes of the stored tensors ---

Shapes = dict[str, tuple[int, ...]]


def _sdar_shapes(config: Mapping[str, Any]) -> Shapes:
    return _qwen_shapes(config, head=config["head_dim"], biased=False)


def _dream_shapes(config: Mapping[str, Any]) -> Shapes:
    head = config["hidden_size"] // config["num_attention_heads"]
    return _qwen_shapes(config, head=head, biased=True)


def _qwen_shapes(config: Mapping[str, Any], *, head: int, biased: bool) -> Shapes:
    width, inner = config["hidden_size"], config["intermediate_size"]
    rows = (config["vocab_size"], width)
    heads = {
        "q": config["num_attention_heads"] * head,
        "k": config["num_key_value_heads"] * head,
        "v": config["num_key_value_heads"] * head,
    }
    shapes: Shapes = {"model.embed_tokens.weight": rows}
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}."
        shapes[f"{name}input_layernorm.weight"] = (width,)
        shapes[f"{name}post_attention_layernorm.weight"] = (width,)
        for part, size in heads.items():
            shapes[f"{name}self_attn.{part}_proj.weight"] = (size, width)
            if biased:
                shapes[f"{name}self_attn.{part}_proj.bias"] = (size,)
            elif part != "v":
                shapes[f"{name}self_attn.{part}_norm.weight"] = (head,)
        shapes[f"{name}self_attn.o_proj.weight"] = (width, heads["q"])
        shapes[f"{name}mlp.gate_proj.weight"] = (inner, width)
        shapes[f"{name}mlp.up_proj.weight"] = (inner, width)
        shapes[f"{name}mlp.down_proj.weight"] = (width, inner)
    shapes["model.norm.weight"] = (width,)
    return shapes | ({} if config["tie_word_embeddings"] else {"lm_head.weight": rows})


def _llada_shapes(config: Mapping[str, Any]) -> Shapes:
    width, inner = config["d_model"], config["mlp_hidden_size"]
    keys = config["n_kv_heads"] * width // config["n_heads"]
    rows, top = (config["embedding_size"], width), "model.transformer."
    shapes: Shapes = {f"{top}wte.weight": rows}
    for layer in range(config["n_layers"]):
        name = f"{top}blocks.{layer}."
        shapes |= {
            f"{name}attn_norm.weight": (width,),
            f"{name}ff_norm.weight": (width,),
            f"{name}q_proj.weight": (width, width),
            f"{name}k_proj.weight": (keys, width),
            f"{name}v_proj.weight": (keys, width),
            f"{name}attn_out.weight": (width, width),
            f"{name}ff_proj.weight": (inner, width),
            f"{name}up_proj.weight": (inner, width),
            f"{name}ff_out.weight": (width, inner),
        }
    return shapes | {f"{top}ln_f.weight": (width,), f"{top}ff_out.weight": rows}


def _llada2_shapes(config: Mapping[str, Any]) -> Shapes:
    width, head = config["hidden_size"], config["head_dim"]
    num_queries, num_keys = config["num_attention_heads"], config["num_key_value_heads"]
    rows = (config["vocab_size"], width)
    shapes: Shapes = {"model.word_embeddings.weight": rows}
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}."
        shapes |= {
            f"{name}input_layernorm.weight": (width,),
            f"{name}post_attention_layernorm.weight": (width,),
            f"{name}attention.query_key_value.weight": (
                (num_queries + 2 * num_keys) * head,
                width,
            ),
            f"{name}attention.query_layernorm.weight": (head,),
            f"{name}attention.key_layernorm.weight": (head,),
            f"{name}attention.dense.weight": (width, num_queries * head),
        }
        if layer < config["first_k_dense_replace"]:
            shapes |= _mlp(f"{name}mlp.", width, config["intermediate_size"])
            continue
        inner = config["moe_intermediate_size"]
        shapes[f"{name}mlp.gate.weight"] = (config["num_experts"], width)
        shapes[f"{name}mlp.gate.expert_bias"] = (config["num_experts"],)
        for expert in range(config["num_experts"]):
            shapes |= _mlp(f"{name}mlp.experts.{expert}.", width, inner)
        shared = inner * config["num_shared_experts"]
        shapes |= _mlp(f"{name}mlp.shared_experts.", width, shared)
    return shapes | {"model.norm.weight": (width,), "lm_head.weight": rows}


def _mlp(name: str, width: int, inner: int) -> Shapes:
    return {
        f"{name}gate_proj.weight": (inner, width),
        f"{name}up_proj.weight": (inner, width),
        f"{name}down_proj.weight": (width, inner),
    }


_CONFIGS = {
    "sdar": _sdar_config,
    "llada2": _llada2_config,
    "llada": _llada_config,
    "dream": _dream_config,
}
_SHAPES = {
    "sdar": _sdar_shapes,
    "llada2": _llada2_shapes,
    "llada": _llada_shapes,
    "dream": _dream_shapes,
}


def main() -> None:
    """Write one checkpoint of each family."""
    parser = argparse.ArgumentParser(prog="python -m tests.checkpoints", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--vocabulary", choices=("tiny", "released"), default="tiny")
    options = parser.parse_args()
    for family in FAMILY_NAMES:
        print(write_released(family, options.directory / family, vocabulary=options.vocabulary))


if __name__ == "__main__":
    main()
