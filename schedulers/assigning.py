"""Who gets which shard.

The dearest pending shard goes first, to the worker that holds least. A worker holds up to
`capacity` shards, so that rows of the next one enter as those of the last one leave; but a shard
that would only wait behind another is kept back for a worker that is expected and not here yet. A
suspect shard goes to a worker with empty hands, which gets no other beside it.

When no shard waits any more, a worker with empty hands gets a duplicate of a shard that straggles
elsewhere, if a fresh attempt would end well before the old one; else it is not needed any more.
"""

from collections.abc import Iterator

from schedulers.crew import Crew, Lease, Member
from schedulers.instructions import Assign, Instruction, Release
from schedulers.limits import Limits
from schedulers.pace import Pace
from schedulers.states import Shard
from schedulers.table import Table


class Assigner:
    """Moves shards of a table to workers of a crew."""

    def __init__(self, table: Table, crew: Crew, *, pace: Pace, limits: Limits) -> None:
        self._table = table
        self._crew = crew
        self._pace = pace
        self._limits = limits

    def assign(self, now: float) -> list[Instruction]:
        """Give out what waits, as far as there is room."""
        given: list[Instruction] = []
        while (shard := self._table.next("suspect")) and (idle := self._crew.idle()):
            given.append(self._give(shard, idle[0], now=now, row_by_row=True))
        while (shard := self._table.next("pending")) and (member := self._crew.roomiest()):
            if member.leases and self._is_kept_back(now):
                break
            given.append(self._give(shard, member, now=now, row_by_row=False))
        return given

    def _is_kept_back(self, now: float) -> bool:
        """Whether what waits is all for workers that are expected."""
        num_pending = self._table.num("pending")
        if num_pending > self._crew.num_coming:
            return False
        patience_s = self._limits.place_patience_s
        return num_pending <= self._crew.num_expected(now, patience_s=patience_s)

    def dismiss(self, now: float, *, drains: bool) -> list[Instruction]:
        """Find something for empty hands, or let them go."""
        if not drains and self._table.num_waiting:  # a resting shard will need somebody
            return []
        return [self._dismiss(member, now=now, drains=drains) for member in self._crew.idle()]

    def _dismiss(self, member: Member, *, now: float, drains: bool) -> Instruction:
        shard = None if drains else self._straggler(now)
        if shard is not None:
            return self._give(shard, member, now=now, row_by_row=False)
        self._crew.forget(member)
        return Release(worker=member.name)

    def _give(self, shard: Shard, member: Member, *, now: float, row_by_row: bool) -> Assign:
        if shard.state == "leased":
            shard.was_duplicated = True
        else:
            self._table.move(shard, state="leased")
        shard.num_holders += 1
        lease = Lease(shard=shard.index, since=now, row_by_row=row_by_row, moved=now)
        self._crew.hold(member, lease)
        return Assign(
            worker=member.name,
            shard=shard.index,
            row_by_row=row_by_row,
            convicted=tuple(sorted(shard.suspicion.convicted)),
        )

    def _straggler(self, now: float) -> Shard | None:
        """The shard that gains most from a second attempt."""
        gains = [(self._gain_s(lease, now=now), lease.shard) for lease in self._single_leases()]
        best_s, shard = max(gains, default=(0.0, -1))
        return self._table[shard] if best_s > 0.0 else None

    def _single_leases(self) -> Iterator[Lease]:
        for member in self._crew:
            for lease in member.leases.values():
                shard = self._table[lease.shard]
                is_lone = shard.state == "leased" and not shard.was_duplicated
                if is_lone and not lease.row_by_row:
                    yield lease

    def _gain_s(self, lease: Lease, *, now: float) -> float:
        """By how much a fresh attempt would end before the old one, past the required margin."""
        cost = self._table[lease.shard].expected_cost
        fresh_s = self._pace.expected_s(cost)
        left_s = self.remaining_s(lease, now=now)
        if fresh_s is None or left_s is None or lease.phase == "publishing":
            return 0.0
        margin_s = self._limits.straggler_factor * fresh_s + self._limits.straggler_gain_s
        return left_s - margin_s

    def remaining_s(self, lease: Lease, *, now: float) -> float | None:
        """How long an attempt still needs, as far as that can be told."""
        cost = self._table[lease.shard].expected_cost
        return self._pace.remaining_s(cost, age_s=now - lease.since, fraction=lease.fraction)
