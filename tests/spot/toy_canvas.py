"""A bidirectional target made of tables: what is frozen, and how long the canvas is, count.

The canvas's opening and later states of its block have logits of their own, as with a real target,
whose frozen keys and values are an approximation. Nothing is told apart by what it does not see.
"""

import numpy as np
import torch
from torch import Tensor

from spot.targets.base import CacheContext, Canvas, CanvasUnit, Opened, State
from spot.targets.checkpoint import TargetSpec
from tests.spot.toy import LENGTH, MASK_ID, NUM_TOKENS, VOCAB_ROWS, Ids, Table

OPENING, LATER = 1, 2


class ToyCanvas:
    """Satisfies ``spot.targets.base.CanvasTarget``; remembers what it was asked to evaluate."""

    def __init__(self, table: Table, *, length: int = LENGTH) -> None:
        torch.set_num_threads(1)
        self.spec = TargetSpec(
            family="toy",
            block_length=length,
            mask_id=MASK_ID,
            stop_ids=(),
            pad_id=0,
            vocab_rows=VOCAB_ROWS,
            max_positions=1000,
            grid="prompt",
            attention="bidirectional",
        )
        self.banned = torch.arange(VOCAB_ROWS) >= NUM_TOKENS
        self.opening_forwards: list[list[Canvas]] = []
        self.forwards: list[list[CanvasUnit]] = []
        self._table = table
        self._seen: dict[tuple[Ids, Ids], Tensor] = {}

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
            hidden=self._rows(outside, canvas[start:end]),
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

    def logits(self, hidden: Tensor) -> Tensor:
        """Nothing left to do."""
        return hidden

    def _later(self, unit: CanvasUnit) -> Tensor:
        keys, values = unit.opened.keys[0][0, :, 0], unit.opened.values[0][0, :1, 0]
        frozen = (*keys.tolist(), *(values % NUM_TOKENS).tolist(), unit.opened.start % 3, LATER)
        return self._rows(frozen, unit.state)

    def _rows(self, outside: Ids, state: State) -> Tensor:
        name = outside, tuple(state.tolist())
        if name not in self._seen:
            self._seen[name] = torch.from_numpy(self._table(*name))
        return self._seen[name]
