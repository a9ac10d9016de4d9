"""Random checkpoints in real layouts, small enough to compare everything with everything."""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

BLOCK_LENGTH = 8
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|MASK|>")
VOCAB_ROWS = 264  # four more rows than the tokenizer has ids
PAD_ID, START_ID, STOP_ID, MASK_ID = 256, 257, 258, 259
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tokenizer(directory: Path) -> None:
    """One token per byte, and the special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIALS))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=SPECIALS[0], chat_template=TEMPLATE
    )
    fast.save_pretrained(directory)


def twin_model(*, seed: int, hidden: int = 48, feedforward: int = 96) -> Qwen3ForCausalLM:
    """A random model with sharp enough conditionals to have something to say."""
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=VOCAB_ROWS,
            hidden_size=hidden,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=16,
            intermediate_size=feedforward,
            max_position_embeddings=256,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(6.0)
    return model.eval()


def write_sdar_twin(directory: Path, *, seed: int = 0, **sizes: int) -> Path:
    """A model directory in SDAR's layout, with block size and mask id in its configuration."""
    twin_model(seed=seed, **sizes).save_pretrained(directory)
    path = directory / "config.json"
    config = json.loads(path.read_text()) | {
        "architectures": ["SDARForCausalLM"],
        "model_type": "sdar",
        "block_size": BLOCK_LENGTH,
        "mask_token_id": MASK_ID,
        "pad_token_id": PAD_ID,
    }
    path.write_text(json.dumps(config))
    generation = {"eos_token_id": [STOP_ID, PAD_ID]}
    (directory / "generation_config.json").write_text(json.dumps(generation))
    write_tokenizer(directory)
    return directory
