"""The workers of a run, and what each holds.

A worker is *asked* for, until it has a place; then it is *starting*, until it is ready; *ready*, it
takes shards. *parked*, it failed at everything and gets no more, but keeps its place, so that no
other worker is put on that device. *ending*, the driver was told to end it, and its shards wait for
what storage says about its last breath. Who is lost or released is
forgotten; no name is given twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from schedulers.events import Phase, Progress

MemberState = Literal["asked", "starting", "ready", "parked", "ending"]


@dataclass(slots=True, kw_only=True)
class Lease:
    """One attempt, as far as it was heard of."""

    shard: int
    since: float
    row_by_row: bool = False
    phase: Phase = "assigned"
    num_rounds: int = 0
    fraction: float = 0.0
    moved: float = 0.0
    """When it was last seen to get on."""

    def note(self, progress: Progress, *, now: float) -> None:
        """A heartbeat told where the attempt is."""
        if (self.phase, self.num_rounds) != (progress.phase, progress.num_rounds):
            self.phase, self.num_rounds, self.moved = progress.phase, progress.num_rounds, now
        self.fraction = progress.fraction


@dataclass(slots=True, kw_only=True)
class Member:
    """One worker: one process life under one name."""

    name: str
    since: float
    """When it came into its state."""
    state: MemberState = "asked"
    node: str | None = None
    is_leaving: bool = False
    """Its node drains, so that it takes no more."""
    heard: float = 0.0
    leases: dict[int, Lease] = field(default_factory=dict)
    has_held: bool = False
    """Whether it ever had a shard."""
    failed_in_a_row: list[int] = field(default_factory=list)

    @property
    def is_usable(self) -> bool:
        """Whether it may be given shards."""
        return self.state == "ready" and not self.is_leaving

    @property
    def is_exclusive(self) -> bool:
        """Whether it decodes row by row, and has to be left alone meanwhile."""
        return any(lease.row_by_row for lease in self.leases.values())


class Crew:
    """All workers that are not gone. Finding one with room does not depend on their number."""

    def __init__(self, *, capacity: int) -> None:
        self._capacity = capacity
        self._members: dict[str, Member] = {}
        # Usable members by the number of shards they hold; whoever is exclusive counts as full.
        self._by_load: list[dict[str, Member]] = [{} for _ in range(capacity + 1)]
        self._load_of: dict[str, int] = {}
        self.num_coming = 0
        """Asked or starting."""
        self.num_placed = 0
        """Starting, or ready and not parked: what can get a job on."""
        self._num_named = 0

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __len__(self) -> int:
        return len(self._members)

    def get(self, name: str) -> Member | None:
        """A worker that is not gone."""
        return self._members.get(name)

    def num_expected(self, now: float, *, patience_s: float) -> int:
        """Workers that should be ready soon; one that gets no place is not waited for."""
        return sum(
            member.state == "starting"
            or (member.state == "asked" and now - member.since <= patience_s)
            for member in self
        )

    @property
    def num_usable(self) -> int:
        """Workers that may be given shards."""
        return len(self._load_of)

    def idle(self) -> list[Member]:
        """Usable workers with empty hands."""
        return list(self._by_load[0].values())

    def roomiest(self) -> Member | None:
        """The usable worker that holds least, if one has room."""
        for members in self._by_load[: self._capacity]:
            for member in members.values():
                return member
        return None

    def ask(self, *, now: float) -> Member:
        """One more worker, under a name of its own."""
        self._num_named += 1
        member = Member(name=f"worker-{self._num_named:04d}", since=now)
        self._members[member.name] = member
        self.num_coming += 1
        return member

    def change(self, member: Member, *, state: MemberState, now: float) -> None:
        """The only place where a worker changes its state."""
        self._count(member, -1)
        member.state, member.since = state, now
        self._count(member, +1)
        self._file(member)

    def leave(self, member: Member) -> None:
        """Its node drains."""
        member.is_leaving = True
        self._file(member)

    def stay(self, member: Member) -> None:
        """Its node does not drain after all."""
        member.is_leaving = False
        self._file(member)

    def forget(self, member: Member) -> None:
        """It is lost or released."""
        self._count(member, -1)
        self._unfile(member)
        del self._members[member.name]

    def hold(self, member: Member, lease: Lease) -> None:
        """It has one more shard."""
        member.leases[lease.shard] = lease
        member.has_held = True
        self._file(member)

    def drop(self, member: Member, shard: int) -> Lease | None:
        """It has the shard no more."""
        lease = member.leases.pop(shard, None)
        self._file(member)
        return lease

    def _count(self, member: Member, step: int) -> None:
        self.num_coming += step * (member.state in ("asked", "starting"))
        self.num_placed += step * (member.state in ("starting", "ready"))

    def _unfile(self, member: Member) -> None:
        load = self._load_of.pop(member.name, None)
        if load is not None:
            del self._by_load[load][member.name]

    def _file(self, member: Member) -> None:
        self._unfile(member)
        if member.is_usable:
            load = self._capacity if member.is_exclusive else len(member.leases)
            self._by_load[load][member.name] = member
            self._load_of[member.name] = load

    def check(self) -> None:
        """Assert every invariant."""
        assert self.num_coming == sum(m.state in ("asked", "starting") for m in self)
        assert self.num_placed == sum(m.state in ("starting", "ready") for m in self)
        assert {m.name for m in self if m.is_usable} == self._load_of.keys()
        for member in self:
            assert not member.leases or member.state not in ("asked", "starting")
            assert len(member.leases) <= (1 if member.is_exclusive else self._capacity)
            assert all(shard == lease.shard for shard, lease in member.leases.items())
        for load, members in enumerate(self._by_load):
            assert all(self._load_of[name] == load for name in members)
