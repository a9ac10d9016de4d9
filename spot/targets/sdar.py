"""SDAR: dense block-diffusion models with Qwen3's weights and key names.

Block-causal attention (bidirectional inside a block, grid from absolute position 0), logits not
shifted, exact prefix keys and values. Runs on transformers' own Qwen3 classes, not on remote code.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from spot.attention import NAME, KVPages, attention_function, make_context
from spot.numerics import ROW_TILE, make_invariant, pad_rows
from spot.targets.base import Unit
from spot.targets.checkpoint import TargetError, TargetSpec, read_json, spec_of, weight_files

ALL_ATTENTION_FUNCTIONS.register(NAME, attention_function)


def read_weights(directory: Path) -> dict[str, Tensor]:
    """All tensors of a directory's safetensors files, as fp32."""
    tensors: dict[str, Tensor] = {}
    for file in weight_files(directory):
        with safe_open(file, framework="pt") as handle:
            for name in handle.keys():  # noqa: SIM118 - not a mapping
                tensors[name] = handle.get_tensor(name).float()
    return tensors


def build_model(directory: Path) -> Qwen3ForCausalLM:
    """The native Qwen3 model with the directory's weights; names must match one to one."""
    settings = read_json(directory / "config.json")
    ignored = ("architectures", "model_type", "auto_map", "block_size", "mask_token_id", "dtype")
    config = Qwen3Config(**{k: v for k, v in settings.items() if k not in ignored})
    config._attn_implementation = NAME
    with torch.device("meta"):
        model = Qwen3ForCausalLM(config)
    weights = read_weights(directory)
    if config.tie_word_embeddings and "model.embed_tokens.weight" in weights:
        weights.setdefault("lm_head.weight", weights["model.embed_tokens.weight"])
    result = model.load_state_dict(weights, strict=False, assign=True)
    if result.missing_keys or result.unexpected_keys:
        raise TargetError(
            f"{directory}: missing weights {result.missing_keys[:3]}, unknown weights "
            f"{result.unexpected_keys[:3]}: the files do not belong to this configuration"
        )
    _materialise_buffers(model)
    return model.eval().requires_grad_(False)


def _materialise_buffers(model: Qwen3ForCausalLM) -> None:
    """Rotary tables are computed, not stored."""
    rotary = model.model.rotary_emb
    rebuilt = type(rotary)(config=model.config)
    model.model.rotary_emb = rebuilt


class SdarTarget:
    """An SDAR checkpoint ready to evaluate block states, fp32 on CPU."""

    def __init__(
        self, path: str | Path, *, block_length: int | None = None, numerics: str = "invariant"
    ) -> None:
        """Load a model directory.

        Raises:
            TargetError: something in the directory is missing or contradictory.
        """
        directory = Path(path)
        self.spec: TargetSpec = spec_of(directory, block_length=block_length)
        self.tokenizer = PreTrainedTokenizerFast.from_pretrained(directory)
        self._model = build_model(directory)
        if numerics == "invariant":
            make_invariant(self._model)
        ids = torch.arange(self.spec.vocab_rows)
        self.banned: Tensor = (ids >= len(self.tokenizer)) | (ids == self.spec.mask_id)

    def new_pages(self, num_pages: int) -> KVPages:
        """An empty pool of pages of one block each."""
        config: Any = self._model.config
        shape = (num_pages, config.num_key_value_heads, self.spec.block_length, config.head_dim)
        like = self._model.model.embed_tokens.weight
        return KVPages(num_layers=config.num_hidden_layers, shape=shape, like=like)

    @torch.inference_mode()
    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        """Final hidden states [U, L, E] of block states; see ``Target.hidden``."""
        num, length = len(units), self.spec.block_length
        units = units + [units[-1]] * (-(-ROW_TILE // length) - num)  # products need 16 rows
        tokens = torch.from_numpy(np.stack([u.state for u in units]))
        starts = torch.tensor([u.start for u in units])
        positions = (starts[:, None] + torch.arange(length)).flatten()[None]
        context = make_context(
            pages,
            tables=[u.pages for u in units],
            writes=[u.write for u in units[:num]] + [-1] * (len(units) - num),
        )
        body = self._model.model
        x = body.embed_tokens(tokens.flatten())[None]
        rotary = body.rotary_emb(x, positions)
        for layer in body.layers:
            x = layer(x, position_embeddings=rotary, block_context=context, block_length=length)
        return body.norm(x)[0].unflatten(0, (-1, length))[:num]  # type: ignore[no-any-return]

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden rows [R, E] to logits [R, V], computed in whole tiles of rows."""
        return self._model.lm_head(pad_rows(hidden))[: hidden.shape[0]]  # type: ignore[no-any-return]
