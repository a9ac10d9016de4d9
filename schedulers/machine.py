"""Who works next: events go in, instructions come out.

No clock, no input or output, no randomness: the same events give the same instructions, so a
history can be replayed. Everything here is about cost. Whether a shard is committed is decided in
storage; the scheduler is told.

Parts: `table` holds the shards (their states are told in `states`), `crew` the workers, `assigning`
brings them together, `trouble` charges what went wrong, `suspicion` finds the row that did it,
`deadlines` finds who takes too long, `pace` and `draining` say what can still end in time,
`staffing` how many workers there are. This file takes events and decides about the run as a whole.

The driver sends one `Tick` first (a job may be complete already) and stops after the last
instruction of a job; whatever it sends later changes nothing, and late workers are released.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from schedulers.assigning import Assigner
from schedulers.crew import Crew, Lease, Member
from schedulers.deadlines import overdue
from schedulers.draining import DrainingNodes
from schedulers.error_budget import ErrorBudget
from schedulers.errors import SchedulerError
from schedulers.events import (
    CancelRequested,
    Cause,
    DrainRequested,
    Event,
    NodeDraining,
    NodeRestored,
    SamplesCounted,
    ShardCommitted,
    ShardFailed,
    ShardLost,
    Tick,
    WorkerEnded,
    WorkerHeard,
    WorkerJoined,
    WorkerLost,
    WorkerPlaced,
)
from schedulers.history import History, Step
from schedulers.instructions import (
    Cancelled,
    Drained,
    EndWorker,
    Finished,
    Instruction,
    Release,
    Seal,
    Starved,
    StopForErrors,
)
from schedulers.limits import Limits
from schedulers.pace import Pace
from schedulers.staffing import Staffing
from schedulers.states import Shard, ShardState
from schedulers.suspicion import Death
from schedulers.table import Table
from schedulers.trouble import Trouble

Take = Callable[["Scheduler", Any], list[Instruction]]


class Scheduler:
    """The state machine of a run.

    `shards` are pairs of index and expected cost; those in `committed` are done. `num_workers` is
    the number of workers asked for. `deaths` are those of earlier runs, in order of time.
    """

    def __init__(
        self,
        shards: Iterable[tuple[int, float]],
        *,
        committed: Iterable[int] = (),
        num_workers: int = 1,
        deaths: Iterable[Death] = (),
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._table = Table(shards, committed=committed, limits=self._limits)
        self._crew = Crew(capacity=self._limits.capacity)
        self._pace = Pace()
        self._trouble = Trouble(self._table, limits=self._limits)
        self._assigner = Assigner(self._table, self._crew, pace=self._pace, limits=self._limits)
        self._staffing = Staffing(
            self._table, self._crew, num_workers=num_workers, limits=self._limits
        )
        self._nodes = DrainingNodes(self._crew, self._assigner, limits=self._limits)
        self._errors = ErrorBudget(self._limits)
        self._drain_end: float | None = None
        self._is_staffed = False
        self._is_over = False
        self.history = History()
        for death in deaths:
            self._trouble.recall(death)

    @property
    def num_pending(self) -> int:
        """Shards that nobody works on and somebody has to."""
        return self._table.num_waiting

    @property
    def num_leased(self) -> int:
        """Shards that somebody works on."""
        return self._table.num("leased")

    @property
    def num_committed(self) -> int:
        """Shards with a commit record."""
        return self._table.num("committed")

    @property
    def num_failed(self) -> int:
        """Shards that were given up."""
        return self._table.num("failed")

    @property
    def num_workers(self) -> int:
        """Workers that may be given shards."""
        return self._crew.num_usable

    @property
    def is_draining(self) -> bool:
        """Whether no more work is given out."""
        return self._drain_end is not None

    @property
    def is_over(self) -> bool:
        """Whether the last instruction was given."""
        return self._is_over

    def leases_of(self, worker: str) -> tuple[Lease, ...]:
        """What a worker holds; nothing if it is not known."""
        member = self._crew.get(worker)
        return tuple(member.leases.values()) if member else ()

    def state_of(self, shard: int) -> ShardState:
        """The state of a shard."""
        return self._table[shard].state

    def handle(self, event: Event) -> list[Instruction]:
        """Take one event and say what follows from it."""
        instructions = self._after_end(event) if self._is_over else self._handle(event)
        if instructions or not isinstance(event, Tick):  # an idle tick changes nothing
            self.history.append(Step(event, tuple(instructions)))
        return instructions

    def _handle(self, event: Event) -> list[Instruction]:
        take = self._TAKES.get(type(event))
        assert take is not None, f"{event!r} is not an event"
        instructions = take(self, event)
        if isinstance(event, WorkerHeard):  # decides nothing that a tick would not
            return instructions
        self._table.wake(event.now)
        if not self.is_draining:
            instructions += self._assigner.assign(event.now)
        instructions += self._assigner.dismiss(event.now, drains=self.is_draining)
        if not self._is_over:
            instructions += self._conclude(event.now)
        return instructions

    def _after_end(self, event: Event) -> list[Instruction]:
        return [Release(worker=event.worker)] if isinstance(event, WorkerJoined) else []

    # Time

    def _take_tick(self, event: Tick) -> list[Instruction]:
        instructions = [] if self._is_staffed else self._staff(event.now)
        self._is_staffed = True
        for member in list(self._crew):
            late = overdue(member, limits=self._limits, now=event.now)
            if late is not None:
                instructions.append(self._end(member, late.cause, late.message, now=event.now))
        return instructions + self._leave_nodes(event.now) + self._staffing.unpark()

    def _end(self, member: Member, cause: Cause, message: str, *, now: float) -> Instruction:
        self._crew.change(member, state="ending", now=now)
        return EndWorker(worker=member.name, cause=cause, message=message)

    def _leave_nodes(self, now: float) -> list[Instruction]:
        message = "its node drains, and nothing that it holds would end in time"
        leavers = self._nodes.leavers(now)
        return [self._end(member, "infrastructure", message, now=now) for member in leavers]

    # Workers

    def _staff(self, now: float) -> list[Instruction]:
        return [] if self.is_draining else self._staffing.staff(now)

    def _take_placed(self, event: WorkerPlaced) -> list[Instruction]:
        member = self._crew.get(event.worker)
        if member is not None and member.state == "asked":
            member.node = event.node
            self._crew.change(member, state="starting", now=event.now)
        return []

    def _take_joined(self, event: WorkerJoined) -> list[Instruction]:
        member = self._crew.get(event.worker)
        if member is None:
            return [Release(worker=event.worker)]
        if member.state == "ending":
            return []
        if member.state not in ("asked", "starting"):
            raise SchedulerError(f"{event}: it is here already", history=self.history)
        member.heard = event.now
        member.is_leaving = member.node in self._nodes
        self._crew.change(member, state="ready", now=event.now)
        return []

    def _take_heard(self, event: WorkerHeard) -> list[Instruction]:
        member = self._crew.get(event.worker)
        if member is not None:
            member.heard = event.now
            for progress in event.running:
                if (lease := member.leases.get(progress.shard)) is not None:
                    lease.note(progress, now=event.now)
        return []

    def _take_ended(self, event: WorkerEnded) -> list[Instruction]:
        member = self._crew.get(event.worker)
        if member is not None:
            self._crew.change(member, state="ending", now=event.now)
        return []

    def _take_lost(self, event: WorkerLost) -> list[Instruction]:
        member = self._crew.get(event.worker)
        if member is None:
            return []
        leases = list(member.leases.values())
        is_excused = member.node in self._nodes
        self._crew.forget(member)
        self._staffing.lost(member, is_excused=is_excused)
        for lease in leases:
            self._table[lease.shard].num_holders -= 1
        for index in event.committed:
            self._commit(self._known(index, event=event))
        instructions: list[Instruction] = []
        for lease in leases:
            instructions += self._charge(lease, event=event, is_excused=is_excused)
        return instructions + self._staffing.unpark() + self._staff(event.now)

    def _charge(self, lease: Lease, *, event: WorkerLost, is_excused: bool) -> list[Instruction]:
        shard, reason = self._table[lease.shard], f"worker {event.worker} was lost ({event.cause})"
        if shard.state != "leased":
            return []
        is_of_rows = event.cause == "death" or (event.cause, lease.phase) == ("stuck", "decoding")
        if is_excused or not is_of_rows or (lease.row_by_row and event.announced is None):
            return self._trouble.infrastructure(shard, reason=reason)
        if lease.row_by_row and event.announced is not None:
            return self._trouble.died_alone(shard, row=event.announced, reason=reason)
        return self._trouble.died_together(shard, reason=reason)

    # Shards

    def _take_committed(self, event: ShardCommitted | ShardLost) -> list[Instruction]:
        shard = self._known(event.shard, event=event)
        member, lease = self._drop(event.worker, shard)
        if member is not None and lease is not None:
            member.failed_in_a_row.clear()
            self._pace.committed(shard.expected_cost, took_s=event.now - lease.since)
        self._staffing.worked()
        if shard.state == "committed":
            return []
        self._commit(shard)
        return self._count(ok=event.ok, errors=event.errors, now=event.now)

    def _commit(self, shard: Shard) -> None:
        if shard.state != "committed":
            self._table.move(shard, state="committed")

    def _take_failed(self, event: ShardFailed) -> list[Instruction]:
        shard = self._known(event.shard, event=event)
        member, lease = self._drop(event.worker, shard)
        if member is None or lease is None:  # of a worker taken for lost: charged for that
            return []
        self._staffing.worked()
        member.failed_in_a_row.append(shard.index)
        parked = self._staffing.park(member, now=event.now)
        return self._charge_failure(shard, event=event) + parked + self._staff_after(parked, event)

    def _charge_failure(self, shard: Shard, *, event: ShardFailed) -> list[Instruction]:
        if shard.state != "leased":
            return []
        if event.infrastructure:
            return self._trouble.storage(shard, reason=event.error, now=event.now)
        return self._trouble.failed(shard, reason=event.error)

    def _staff_after(self, parked: list[Instruction], event: Event) -> list[Instruction]:
        return self._staff(event.now) if parked else []

    def _drop(self, worker: str, shard: Shard) -> tuple[Member | None, Lease | None]:
        member = self._crew.get(worker)
        lease = self._crew.drop(member, shard.index) if member else None
        shard.num_holders -= lease is not None
        return member, lease

    def _known(self, index: int, *, event: Event) -> Shard:
        if index not in self._table:
            raise SchedulerError(f"{event}: there is no such shard", history=self.history)
        return self._table[index]

    # Samples

    def _take_counted(self, event: SamplesCounted) -> list[Instruction]:
        return self._count(ok=event.ok, errors=event.errors, now=event.now)

    def _count(self, *, ok: int, errors: int, now: float) -> list[Instruction]:
        self._errors.count(ok=ok, errors=errors)
        if self.is_draining or not self._errors.is_exceeded:
            return []
        self._drain(now)
        return [StopForErrors(errors=self._errors.errors, samples=self._errors.samples)]

    # Nodes that go

    def _take_node_draining(self, event: NodeDraining) -> list[Instruction]:
        self._nodes.add(event.node, deadline=event.deadline)
        return self._leave_nodes(event.now) + self._staff(event.now)

    def _take_node_restored(self, event: NodeRestored) -> list[Instruction]:
        self._nodes.remove(event.node)
        return []

    # The end

    def _take_drain(self, event: DrainRequested) -> list[Instruction]:
        if not self.is_draining:
            self._drain(event.now)
        return []

    def _drain(self, now: float) -> None:
        self._drain_end = now + self._limits.drain_s

    def _take_cancel(self, event: CancelRequested) -> list[Instruction]:
        self._is_over = True
        return [Cancelled()]

    def _conclude(self, now: float) -> list[Instruction]:
        instructions = self._give_up_hopeless()
        if self.num_committed == len(self._table):
            instructions += [Seal(), Finished()]
        elif not self.num_pending and not self.num_leased:
            instructions += [Finished()]
        elif self._drain_end is not None and (not self.num_leased or now >= self._drain_end):
            instructions += [Drained()]
        elif self._staffing.is_starved(now):
            instructions += [Starved()]
        self._is_over = bool(instructions)
        return instructions

    def _give_up_hopeless(self) -> list[Instruction]:
        if len(self._crew) or self.is_draining or not self._staffing.is_hopeless:
            return []
        num_lost = self._staffing.num_barren_losses
        reason = f"{num_lost} workers in a row were lost before they took a shard"
        return [self._trouble.give_up(shard, reason=reason) for shard in self._table.in_order()]

    _TAKES: ClassVar[dict[type, Take]] = {
        Tick: _take_tick,
        WorkerPlaced: _take_placed,
        WorkerJoined: _take_joined,
        WorkerHeard: _take_heard,
        WorkerEnded: _take_ended,
        WorkerLost: _take_lost,
        ShardCommitted: _take_committed,
        ShardLost: _take_committed,
        ShardFailed: _take_failed,
        SamplesCounted: _take_counted,
        NodeDraining: _take_node_draining,
        NodeRestored: _take_node_restored,
        DrainRequested: _take_drain,
        CancelRequested: _take_cancel,
    }

    def check(self) -> None:
        """Assert every invariant; cheap enough for tests, not for every event of a big job."""
        self._table.check()
        self._crew.check()
        holders: dict[int, int] = {}
        for member in self._crew:
            for lease in member.leases.values():
                holders[lease.shard] = holders.get(lease.shard, 0) + 1
                assert not (lease.row_by_row and self._table[lease.shard].num_holders != 1)
        assert all(shard.num_holders == holders.get(shard.index, 0) for shard in self._table)
        assert self._is_over or not self._idle_hands_wait()

    def _idle_hands_wait(self) -> bool:
        """Whether a worker idles although something waits for one."""
        return bool(self._crew.idle()) and bool(self._table.num("pending", "suspect"))
