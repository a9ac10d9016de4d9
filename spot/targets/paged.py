"""Targets with exact prefix pages: attention looks back only, so a finished block never changes.

One class for all such families: their native models have the same parts, and what differs between
them is in the registry.
"""

from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
import torch
from torch import Tensor
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from spot.attention import NAME, KVPages, attention_function, make_context
from spot.numerics import ROW_TILE, pad_rows
from spot.targets.base import Unit
from spot.targets.family import TargetError
from spot.targets.loading import Loaded, Options, load

ALL_ATTENTION_FUNCTIONS.register(NAME, attention_function)


class PagedTarget:
    """A checkpoint of a block-causal family, ready to evaluate block states."""

    def __init__(self, loaded: Loaded) -> None:
        self.spec, self.tokenizer, self.banned = loaded.spec, loaded.tokenizer, loaded.banned
        self.model: Any = loaded.model
        self._device, self._num_key_heads = self.banned.device, loaded.num_key_heads

    @classmethod
    def load(cls, path: str | Path, **options: Unpack[Options]) -> Self:
        """Load a model directory; arguments and errors are those of ``loading.load``."""
        loaded = load(path, **options)
        if not loaded.spec.exact_prefix:
            raise TargetError(
                f"{path}: {loaded.spec.family} attends both ways, so its blocks have no exact "
                "pages: decode it over a canvas"
            )
        return cls(loaded)

    def new_pages(self, num_pages: int) -> KVPages:
        """An empty pool of pages of one block each."""
        config = self.model.config
        shape = (num_pages, self._num_key_heads, self.spec.block_length, config.head_dim)
        like = self.model.model.embed_tokens.weight
        return KVPages(num_layers=config.num_hidden_layers, shape=shape, like=like)

    @torch.inference_mode()
    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        """Final hidden states [U, L, E] of block states; see ``Target.hidden``."""
        num, length = len(units), self.spec.block_length
        units = units + [units[-1]] * (-(-ROW_TILE // length) - num)  # products need 16 rows
        tokens = torch.from_numpy(np.stack([u.state for u in units])).to(self._device)
        starts = torch.tensor([u.start for u in units], device=self._device)
        positions = (starts[:, None] + torch.arange(length, device=self._device)).flatten()[None]
        context = make_context(
            pages,
            tables=[u.pages for u in units],
            writes=[u.write for u in units[:num]] + [-1] * (len(units) - num),
        )
        body = self.model.model
        x = body.embed_tokens(tokens.flatten())[None]
        rotary = body.rotary_emb(x, positions)
        for layer in body.layers:
            x = layer(x, position_embeddings=rotary, block_context=context, block_length=length)
        return body.norm(x)[0].unflatten(0, (-1, length))[:num]  # type: ignore[no-any-return]

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden rows [R, E] to logits [R, V], computed in whole tiles of rows."""
        return self.model.lm_head(pad_rows(hidden))[: hidden.shape[0]]  # type: ignore[no-any-return]
