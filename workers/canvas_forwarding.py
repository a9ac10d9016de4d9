"""The runner of targets whose attention looks both ways: openings one by one, states together.

On out-of-memory the number of states per forward is halved and remembered; pieces change no bit.
"""

import numpy as np

from spot.targets.base import (
    CacheContext,
    CanvasTarget,
    CanvasUnit,
    Conditionals,
    conditionals_of,
)
from workers.canvas_sample import CanvasSample
from workers.forwarding import is_out_of_memory, join


class CanvasForwarder:
    """Evaluates openings and states; remembers how many states fit."""

    def __init__(self, target: CanvasTarget, *, context: CacheContext) -> None:
        self._target, self._context = target, context
        self.ceiling: int | None = None  # states per forward; None while everything has fitted
        self.num_out_of_memory = 0
        self.num_forwards = 0
        self.num_positions = 0

    def run(self, opening: list[CanvasSample], units: list[CanvasUnit]) -> Conditionals:
        """The conditionals of the roots of samples that open a block, then of states.

        Leaves every opening's frozen keys and values with its sample.

        Raises:
            Exception: what the target raised, if not for want of memory or at a single state.
        """
        parts = [self._open(sample) for sample in opening]
        return join(parts + self._states(units))

    def _open(self, sample: CanvasSample) -> Conditionals:
        sequence = sample.sequence
        opened = self._target.open(sample.canvas, start=sequence.start, context=self._context)
        sample.opened = opened
        self._count(len(sample.canvas))
        sequence.trajectory.cost.positions += len(sample.canvas)
        return conditionals_of(self._target, opened.hidden[None], sequence.root[None])

    def _states(self, units: list[CanvasUnit]) -> list[Conditionals]:
        while True:
            size = self.ceiling or max(1, len(units))
            try:
                pieces = [units[first : first + size] for first in range(0, len(units), size)]
                return [self._piece(piece) for piece in pieces]
            except Exception as error:
                if not is_out_of_memory(error) or size == 1:
                    raise
                self.num_out_of_memory += 1
                self.ceiling = max(1, min(size, len(units)) // 2)

    def _piece(self, units: list[CanvasUnit]) -> Conditionals:
        states = np.stack([unit.state for unit in units])
        found = conditionals_of(self._target, self._target.hidden(units), states)
        self._count(states.size)
        return found

    def _count(self, num_positions: int) -> None:
        self.num_forwards += 1
        self.num_positions += num_positions
