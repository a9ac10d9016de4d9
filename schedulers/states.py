"""The states of a shard.

*pending*: nobody works on it, and any worker with room may get it. Where it came back from a lost
worker or a failed attempt, that has been charged already.

*suspect*: nobody works on it, and workers have died under it. It waits for a worker with empty
hands, which will decode it row by row and hold nothing else meanwhile: so that a death is this
shard's, and the row's that was announced.

*resting*: nobody works on it, since storage failed under its last attempt. It is pending or suspect
again when its rest is over; each rest is longer than the one before.

*leased*: one known worker has it; two, where it straggled and was duplicated. A lease lives in
memory only. It ends when the worker reports, or is lost, or is silent for too long; never by a
message to storage.

*committed*: its commit record is in storage. This is final. Workers may still hold it, if another
attempt's record came first; they will report the shard as lost.

*failed*: its budget is used up, and this run gives it no further attempt. Only the late commit of
an attempt that was believed dead can still move it, to committed.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from schedulers.limits import Limits
from schedulers.suspicion import Suspicion

ShardState = Literal["pending", "suspect", "resting", "leased", "committed", "failed"]


class Rank(NamedTuple):
    """The order of a queue: the greatest is next. Dearest first, then the lowest index."""

    expected_cost: float
    negative_index: int

    @property
    def shard(self) -> int:
        """The shard that is meant."""
        return -self.negative_index


@dataclass(slots=True, kw_only=True)
class Shard:
    """What the scheduler knows about one shard."""

    index: int
    expected_cost: float
    state: ShardState = "pending"
    num_holders: int = 0
    was_duplicated: bool = False  # once is enough, whatever becomes of the duplicate
    num_failures: int = 0  # charged to `Limits.attempts`
    num_infrastructure_failures: int = 0  # charged to a wider budget of their own
    suspicion: Suspicion = field(default_factory=Suspicion)

    @property
    def rank(self) -> Rank:
        """Its place in a queue."""
        return Rank(self.expected_cost, -self.index)

    def is_spent(self, limits: Limits) -> bool:
        """Whether the shard has had its last attempt."""
        return (
            self.num_failures >= limits.attempts
            or self.num_infrastructure_failures >= limits.infrastructure_attempts
        )
