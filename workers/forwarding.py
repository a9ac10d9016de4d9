"""The runner: evaluates a round's units, in pieces where memory does not hold them all at once.

On out-of-memory the ceiling on units per forward is halved and remembered; the engine admits and
drafts under it from then on, so later rounds fit in one piece. Pieces change no bit: stores come
first, in the order in which they build on each other, and a state reads finished pages only.
"""

import torch
from torch import Tensor

from spot.attention import KVPages
from spot.targets.base import Conditionals, Target, Unit, evaluate
from spot.targets.logit_rows import LogitRows
from workers.rounds import Round

# PyTorch's CPU allocator has no exception type of its own; this is how its RuntimeError begins.
CPU_ALLOCATOR = "DefaultCPUAllocator"


def is_out_of_memory(error: Exception) -> bool:
    """Whether an allocation failed, on whatever device."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and CPU_ALLOCATOR in str(error)


def in_pieces(units: list[Unit], size: int) -> list[list[Unit]]:
    """Consecutive parts of at most ``size`` units."""
    return [units[first : first + size] for first in range(0, len(units), size)]


def join(parts: list[Conditionals]) -> Conditionals:
    """The conditionals of consecutive pieces as those of one forward."""
    rows_of, rows = [], 0
    for part in parts:
        rows_of.append(torch.where(part.row_of < 0, part.row_of, part.row_of + rows))
        rows += part.confidence.numel()
    return Conditionals(
        torch.cat(rows_of),
        LogitRows.join([p.logits for p in parts]),
        torch.cat([p.confidence for p in parts]),
        torch.cat([p.token for p in parts]),
    )


class Forwarder:
    """Evaluates rounds; remembers how many units fit."""

    def __init__(self, target: Target, pages: KVPages) -> None:
        self._target, self._pages = target, pages
        self.ceiling: int | None = None  # units per forward; None while everything has fitted
        self.num_out_of_memory = 0

    def run(self, round_: Round) -> Conditionals | None:
        """The conditionals of the round's states; None if it only stores.

        Raises:
            Exception: what the target raised, if not for want of memory or at a single unit.
        """
        while True:
            try:
                return self._run(round_)
            except Exception as error:
                if not is_out_of_memory(error) or self.ceiling == 1:
                    raise
                self._halve(round_.num_units)

    def _halve(self, num_units: int) -> None:
        self.num_out_of_memory += 1
        self.ceiling = max(1, min(num_units, self.ceiling or num_units) // 2)

    def _run(self, round_: Round) -> Conditionals | None:
        if self.ceiling is None or round_.num_units <= self.ceiling:
            return self._whole(round_)
        for piece in in_pieces(round_.stores, self.ceiling):
            self._store(piece)
        parts = [self._states(piece, []) for piece in in_pieces(round_.states, self.ceiling)]
        return join(parts) if parts else None

    def _whole(self, round_: Round) -> Conditionals | None:
        if round_.states:
            return self._states(round_.states, round_.stores + round_.padding)
        self._store(round_.stores)
        return None

    def _states(self, states: list[Unit], others: list[Unit]) -> Conditionals:
        return evaluate(self._target, states + others, self._pages, num_states=len(states))

    def _store(self, stores: list[Unit]) -> Tensor:
        return self._target.hidden(stores, self._pages)
