"""What ends without a commit costs a shard: whose budget is charged, and what follows.

Four kinds. *A failure* that the worker reported may be the shard's own fault, and counts to
`attempts`. *A death together* makes its rows suspect. *A death alone* is held against the announced
row. *Infrastructure* has a wider budget and never touches a row; where storage failed, the shard
rests before it is tried again.
"""

from schedulers.instructions import Convict, GiveUp, Instruction
from schedulers.limits import Limits
from schedulers.states import Shard
from schedulers.suspicion import Death
from schedulers.table import Table


class Trouble:
    """Charges shards of a table and lets them wait again, or gives them up."""

    def __init__(self, table: Table, *, limits: Limits) -> None:
        self._table = table
        self._limits = limits

    def recall(self, death: Death) -> None:
        """A death of an earlier run, from its failure record."""
        shard = self._table[death.shard]
        self._hold_against(shard, row=death.row)
        if shard.state == "pending":
            self._table.requeue(shard)

    def _hold_against(self, shard: Shard, *, row: int | None) -> None:
        if row is None:
            shard.suspicion.died_together()
        else:
            num_forgiven = shard.suspicion.died_alone(row, limits=self._limits)
            # The row got through since: what killed the workers then was not of the shard.
            shard.num_infrastructure_failures += num_forgiven

    def failed(self, shard: Shard, *, reason: str) -> list[Instruction]:
        """The worker reported that the attempt failed, and may be right to blame the shard."""
        shard.num_failures += 1
        return self._again(shard, reason=reason)

    def died_together(self, shard: Shard, *, reason: str) -> list[Instruction]:
        """A worker died while the rows ran together."""
        self._hold_against(shard, row=None)
        return self._again(shard, reason=reason)

    def died_alone(self, shard: Shard, *, row: int, reason: str) -> list[Instruction]:
        """A worker died under the row that it had announced."""
        before = set(shard.suspicion.convicted)
        self._hold_against(shard, row=row)
        convictions: list[Instruction] = [
            Convict(shard=shard.index, row=row) for row in shard.suspicion.convicted - before
        ]
        return convictions + self._again(shard, reason=reason)

    def infrastructure(self, shard: Shard, *, reason: str) -> list[Instruction]:
        """The attempt ended for no fault of the shard's."""
        shard.num_infrastructure_failures += 1
        return self._again(shard, reason=reason)

    def storage(self, shard: Shard, *, reason: str, now: float) -> list[Instruction]:
        """Storage failed under the attempt; the shard rests, longer each time."""
        shard.num_infrastructure_failures += 1
        if shard.num_holders or shard.is_spent(self._limits):
            return self._again(shard, reason=reason)
        doublings = shard.num_infrastructure_failures - 1
        rest_s = min(self._limits.max_rest_s, self._limits.rest_s * 2.0**doublings)
        self._table.rest(shard, until=now + rest_s)
        return []

    def _again(self, shard: Shard, *, reason: str) -> list[Instruction]:
        if shard.num_holders:  # a duplicate still runs
            return []
        if not shard.is_spent(self._limits):
            self._table.requeue(shard)
            return []
        return [self.give_up(shard, reason=reason)]

    def give_up(self, shard: Shard, *, reason: str) -> GiveUp:
        """No further attempt in this run."""
        self._table.move(shard, state="failed")
        return GiveUp(shard=shard.index, reason=reason)
