"""The states of a shard.

*pending*: nobody works on it. It is in the queue, and only pending shards are. Where it came back
from a lost worker or a failed attempt, its budget has been charged already.

*leased*: exactly one known worker has it. A lease lives in memory only; it ends when the worker
reports or is lost, never by a message to storage.

*committed*: its commit record is in storage. This is final. A worker may still hold it, if another
attempt's record came first; that worker will report the shard as lost.

*failed*: its budget is used up, and this run gives it no further attempt. Only the late commit of
an attempt that was believed dead can still move it, to committed.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

ShardState = Literal["pending", "leased", "committed", "failed"]


class Rank(NamedTuple):
    """The order of the queue: the greatest is next. Dearest first, then the lowest index."""

    expected_cost: float
    negative_index: int

    @property
    def shard(self) -> int:
        """The shard that is meant."""
        return -self.negative_index


@dataclass(slots=True, kw_only=True)
class Shard:
    """What the scheduler knows about one shard; owned and changed by `machine.Scheduler` only."""

    index: int
    expected_cost: float
    state: ShardState = "pending"
    num_failures: int = 0  # charged to `attempts`
    num_infrastructure_failures: int = 0  # charged to a wider budget of their own

    @property
    def rank(self) -> Rank:
        """Its place in the queue."""
        return Rank(self.expected_cost, -self.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much trouble is borne before giving up."""

    attempts: int
    infrastructure_attempts: int

    def is_spent(self, shard: Shard) -> bool:
        """Whether the shard has had its last attempt."""
        return (
            shard.num_failures >= self.attempts
            or shard.num_infrastructure_failures >= self.infrastructure_attempts
        )
