"""Which row of a shard kills its workers.

A death says nothing about which of the rows that ran together did it. After some deaths the shard
is *suspect*: its rows run one at a time, each announced before it starts, on a worker that holds
nothing else. A row under whose announced run workers died often enough is *convicted*, and becomes
an error row. A row that gets through is *cleared*: whatever died under it before was not its doing.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from schedulers.limits import Limits


class Death(NamedTuple):
    """A worker died under a shard; `row` is the one that it had announced, if it announced any."""

    shard: int
    row: int | None = None


@dataclass(slots=True, kw_only=True)
class Suspicion:
    """What is held against the rows of one shard."""

    num_together: int = 0
    """Deaths while its rows ran together."""
    num_alone: dict[int, int] = field(default_factory=dict)
    """Deaths under each announced row, since it last got through."""
    convicted: set[int] = field(default_factory=set)

    def is_suspect(self, limits: Limits) -> bool:
        """Whether the rows have to run one at a time."""
        return self.num_together >= limits.deaths_together

    def died_together(self) -> None:
        """A worker died while the rows ran together."""
        self.num_together += 1

    def died_alone(self, row: int, *, limits: Limits) -> int:
        """A worker died under this row; how many earlier deaths are proved not to be a row's.

        Rows run in order, so that all before this one got through.
        """
        cleared = [before for before in self.num_alone if before < row]
        num_forgiven = sum(self.num_alone.pop(before) for before in cleared)
        self.num_alone[row] = self.num_alone.get(row, 0) + 1
        if self.num_alone[row] >= limits.deaths_alone:
            del self.num_alone[row]
            self.convicted.add(row)
        return num_forgiven
