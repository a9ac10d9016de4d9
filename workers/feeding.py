"""In which portions the rows of an attempt enter the batch: all at once, or one at a time.

One at a time is for shards under which workers have died: each row is announced in storage before
it starts, and none enters before the one ahead of it has ended.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from manifests.staged import StagedRow
from workers.shard_assembly import ShardAssembly

POISON_CLASS = "PoisonRow"


class Feed(Protocol):
    """Hands out the rows of one attempt."""

    def due(self, assembly: ShardAssembly) -> Sequence[StagedRow]:
        """The rows that enter now, in view of the samples that have come out."""

    def is_exhausted(self, assembly: ShardAssembly) -> bool:
        """Whether all have entered."""


class AllRows:
    """All rows at once."""

    def __init__(self) -> None:
        self._is_fed = False

    def due(self, assembly: ShardAssembly) -> Sequence[StagedRow]:
        """All, the first time."""
        if self._is_fed:
            return ()
        self._is_fed = True
        return assembly.decoded_rows

    def is_exhausted(self, assembly: ShardAssembly) -> bool:
        """After the first time."""
        return self._is_fed


class RowByRow:
    """One row at a time; `announce` is told its index first, and returns when that is durable."""

    def __init__(self, announce: Callable[[int], None]) -> None:
        self._announce = announce
        self._num_fed = 0

    def due(self, assembly: ShardAssembly) -> Sequence[StagedRow]:
        """The next row, once all samples of the rows before are there."""
        is_waiting = assembly.num_collected < self._num_fed * assembly.num_samples
        if is_waiting or self.is_exhausted(assembly):
            return ()
        row = assembly.decoded_rows[self._num_fed]
        if row.error_class is None:
            self._announce(assembly.shard.index_of(row.row))
        self._num_fed += 1
        return (row,)

    def is_exhausted(self, assembly: ShardAssembly) -> bool:
        """Whether the last row has entered."""
        return self._num_fed == len(assembly.decoded_rows)
