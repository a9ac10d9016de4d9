"""Targets whose attention looks both ways: LLaDA-8B and Dream-7B.

When a block opens, one forward evaluates the whole canvas and freezes keys and values outside the
block; states of the block are then evaluated against them. That is an approximation of the model
(its authors' and Fast-dLLM's own), the same for drafted and draft-free decoding. Canvases that are
opened together lie one behind the other in a row of positions, and see themselves only.
"""

from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from spot.numerics import ROW_TILE, pad_rows
from spot.targets.base import CacheContext, Canvas, CanvasUnit, Opened
from spot.targets.canvas_attention import (
    CANVAS,
    Opening,
    States,
    attention_function,
    group_states,
)
from spot.targets.family import TargetError
from spot.targets.loading import Loaded, Options, load

ALL_ATTENTION_FUNCTIONS.register(CANVAS, attention_function)


class NativeCanvasTarget:
    """A checkpoint of a bidirectional family, ready to evaluate canvases and block states."""

    def __init__(self, loaded: Loaded) -> None:
        self.spec, self.tokenizer, self.banned = loaded.spec, loaded.tokenizer, loaded.banned
        self.model: Any = loaded.model
        self._device = self.banned.device

    @classmethod
    def load(cls, path: str | Path, **options: Unpack[Options]) -> Self:
        """Load a model directory; arguments and errors are those of ``loading.load``."""
        loaded = load(path, **options)
        if loaded.spec.exact_prefix:
            raise TargetError(
                f"{path}: {loaded.spec.family} attends back only: decode it with exact pages"
            )
        return cls(loaded)

    @torch.inference_mode()
    def open(self, canvases: list[Canvas], *, context: CacheContext) -> list[Opened]:
        """Evaluate whole canvases and freeze what is outside their blocks; see ``CanvasTarget``."""
        lengths = [len(canvas.tokens) for canvas in canvases]
        padding = (0, max(0, ROW_TILE - sum(lengths)))
        tokens = torch.from_numpy(np.concatenate([canvas.tokens for canvas in canvases]))
        positions = torch.cat([torch.arange(length) for length in lengths])
        opening = Opening(lengths=tuple(lengths))
        rows = self._rows(
            functional.pad(tokens, padding), functional.pad(positions, padding), opening
        )
        firsts = np.cumsum([0, *lengths[:-1]]).tolist()
        return [
            self._freeze(canvas, first, rows=rows, opening=opening, context=context)
            for canvas, first in zip(canvases, firsts, strict=True)
        ]

    def _freeze(
        self, canvas: Canvas, first: int, *, rows: Tensor, opening: Opening, context: CacheContext
    ) -> Opened:
        """What is kept of a canvas that begins at row ``first``."""
        start, num = canvas.start, len(canvas.tokens)
        end = start + self.spec.block_length
        rows = rows[first : first + num]
        # a view would keep the rows of all canvases alive
        before = rows[start - 1].clone() if self.spec.shifted and start > 0 else None
        behind = range(end, num if context == "prefix+suffix" else end)
        frozen = torch.tensor([*range(start), *behind], dtype=torch.int64, device=self._device)
        return Opened(
            start=start,
            hidden=self._aligned(rows[None, start:end], [before])[0].clone(),
            keys=tuple(keys[:, first + frozen] for keys in opening.keys),
            values=tuple(values[:, first + frozen] for values in opening.values),
            before=before,
        )

    @torch.inference_mode()
    def hidden(self, units: list[CanvasUnit]) -> Tensor:
        """Final hidden states [U, L, E] of block states; see ``CanvasTarget``."""
        num, length = len(units), self.spec.block_length
        padded = units + [units[-1]] * (-(-ROW_TILE // length) - num)  # products need 16 rows
        tokens = torch.from_numpy(np.concatenate([u.state for u in padded]))
        starts = torch.tensor([u.opened.start for u in padded])
        positions = (starts[:, None] + torch.arange(length)).flatten()
        states = group_states(padded, block_length=length, device=self._device)
        rows = self._rows(tokens, positions, states).unflatten(0, (-1, length))[:num]
        return self._aligned(rows, [u.opened.before for u in units])

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden rows [R, E] to logits [R, V], computed in whole tiles of rows."""
        return self.model.lm_head(pad_rows(hidden))[: hidden.shape[0]]  # type: ignore[no-any-return]

    def _rows(self, tokens: Tensor, positions: Tensor, canvas: Opening | States) -> Tensor:
        """Final hidden states [R, E] of a row of positions."""
        body = self.model.model
        x = body.embed_tokens(tokens.to(self._device))[None]
        rotary = body.rotary_emb(x, positions.to(self._device)[None])
        for layer in body.layers:
            x = layer(x, position_embeddings=rotary, canvas=canvas)
        return body.norm(x)[0]  # type: ignore[no-any-return]

    def _aligned(self, rows: Tensor, befores: list[Tensor | None]) -> Tensor:
        """Rows [U, L, E] such that row l predicts position l.

        Shifted logits predict the next position; nothing predicts the first one of a canvas, which
        by the family's convention takes its own.
        """
        if not self.spec.shifted:
            return rows
        first = [
            r[0] if before is None else before for r, before in zip(rows, befores, strict=True)
        ]
        return torch.cat([torch.stack(first)[:, None], rows[:, :-1]], dim=1)
