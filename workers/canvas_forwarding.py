"""The runner of targets whose attention looks both ways: canvases together, then states together.

On out-of-memory the number of positions of openings, or of states, per forward is halved and
remembered; pieces change no bit.
"""

import numpy as np
import torch

from spot.targets.base import (
    CacheContext,
    Canvas,
    CanvasTarget,
    CanvasUnit,
    Conditionals,
    State,
    conditionals_of,
)
from workers.canvas_round import CanvasRound
from workers.forwarding import is_out_of_memory

# Forwards of so many positions are compute bound: larger ones would only take more memory.
MAX_OPENING_POSITIONS = 4096


def in_forwards(canvases: list[Canvas], *, most: int) -> list[list[Canvas]]:
    """Consecutive canvases of at most ``most`` positions together, and at least one of them."""
    parts: list[list[Canvas]] = []
    room = 0
    for canvas in canvases:
        num = len(canvas.tokens)
        if not parts or num > room:
            parts.append([])
            room = most
        parts[-1].append(canvas)
        room -= num
    return parts


class CanvasForwarder:
    """Evaluates openings and states; remembers how many fit."""

    def __init__(self, target: CanvasTarget, *, context: CacheContext) -> None:
        self._target, self._context = target, context
        self.ceiling: int | None = None  # states per forward; None while everything has fitted
        self.opening_ceiling = MAX_OPENING_POSITIONS  # positions, where several canvases share one
        self.num_out_of_memory = 0
        self.num_forwards = 0
        self.num_positions = 0

    def open(self, round_: CanvasRound) -> list[Conditionals]:
        """Open the round's canvases; frozen keys and values are left with their samples.

        Raises:
            Exception: what the target raised, if not for want of memory or at a single canvas.
        """
        while True:
            parts = in_forwards(round_.canvases, most=self.opening_ceiling)
            try:
                return self._opened(round_, parts)
            except Exception as error:
                largest = max(parts, key=len)
                if not is_out_of_memory(error) or len(largest) == 1:
                    raise
                self.num_out_of_memory += 1
                self.opening_ceiling = max(sum(len(c.tokens) for c in p) for p in parts) // 2

    def _opened(self, round_: CanvasRound, parts: list[list[Canvas]]) -> list[Conditionals]:
        found, openers = [], iter(round_.openers)
        for canvases in parts:
            opened = self._target.open(canvases, context=self._context)
            self._count(sum(len(canvas.tokens) for canvas in canvases))
            for each in opened:
                for sample in next(openers):
                    sample.open(each)
            hidden = torch.stack([each.hidden for each in opened])
            found.append(conditionals_of(self._target, hidden, self._blocks(canvases)))
        return found

    def _blocks(self, canvases: list[Canvas]) -> State:
        length = self._target.spec.block_length
        return np.stack([canvas.tokens[canvas.start :][:length] for canvas in canvases])

    def evaluate(self, units: list[CanvasUnit]) -> list[Conditionals]:
        """The conditionals of states.

        Raises:
            Exception: what the target raised, if not for want of memory or at a single state.
        """
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
