"""A bidirectional target made of tables: what is frozen, and how long the canvas is, count.

The canvas's opening and later states of its block have logits of their own, as with a real target,
whose frozen keys and values are an approximation. Nothing is told apart by what it does not see.
"""

import numpy as np
import torch
from torch import Tensor

from spot.targets.base import CacheContext, Canvas, CanvasUnit, Opened, State
from tests.spot.toy import LENGTH, NUM_TOKENS, Table, ToyHead

OPENING, LATER = 1, 2


class ToyCanvas(ToyHead):
    """Satisfies ``spot.targets.base.CanvasTarget``; remembers what it was asked to evaluate."""

    def __init__(self, table: Table, *, length: int = LENGTH) -> None:
        super().__init__(table, length=length, grid="prompt", attention="bidirectional")
        self.opening_forwards: list[list[Canvas]] = []
        self.forwards: list[list[CanvasUnit]] = []

    def open(self, canvases: list[Canvas], *, context: CacheContext) -> list[Opened]:
        """Each by itself."""
        self.opening_forwards.append([Canvas(c.tokens.copy(), c.start) for c in canvases])
        return [self._open(canvas.tokens, canvas.start, context) for canvas in canvases]

    def _open(self, canvas: State, start: int, context: CacheContext) -> Opened:
        """The frozen tokens as keys, the canvas's length as values."""
        end = start + self.spec.block_length
        behind = canvas[end:] if context == "prefix+suffix" else canvas[:0]
        frozen = torch.from_numpy(np.concatenate([canvas[:start], behind]))
        outside = (*canvas[:start].tolist(), *canvas[end:].tolist(), OPENING)
        return Opened(
            start=start,
            hidden=self.rows_of(outside, canvas[start:end]),
            keys=(frozen.view(1, -1, 1),),
            values=(torch.full((1, len(frozen), 1), len(canvas)),),
            before=None,
        )

    @property
    def openings(self) -> list[Canvas]:
        """All canvases that were opened."""
        return [canvas for forward in self.opening_forwards for canvas in forward]

    def hidden(self, units: list[CanvasUnit]) -> Tensor:
        """The logits themselves, [U, L, V]."""
        self.forwards.append(units)
        return torch.stack([self._later(unit) for unit in units])

    def _later(self, unit: CanvasUnit) -> Tensor:
        keys, values = unit.opened.keys[0][0, :, 0], unit.opened.values[0][0, :1, 0]
        frozen = (*keys.tolist(), *(values % NUM_TOKENS).tolist(), unit.opened.start % 3, LATER)
        return self.rows_of(frozen, unit.state)
