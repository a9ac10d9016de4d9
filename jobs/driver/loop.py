"""The driver's loop: notices become events, instructions of the scheduler become calls.

Between the two stands storage: before the scheduler hears that a shard is committed, its record was
read; before a lost worker's shards go back to the queue, records are looked for that it may have
written with its last breath. The loop decides nothing itself, and waits for storage nowhere: looks
run beside it (`looks`), and their events come when they come.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from jobs.driver.ledger import Ledger
from jobs.driver.looks import Looks, patiently
from jobs.driver.losses import Loss, look_after
from jobs.driver.nodes import DrainNotices
from jobs.driver.notices import Gone, Heard, Joined, Notice, Placed, Refused, Reported
from jobs.driver.tracker import Tracker
from jobs.progress import ProgressSink
from manifests.control import Request
from manifests.records import CommitRecord, Seal
from schedulers import events, instructions
from schedulers.machine import Scheduler
from workers.attempt import ShardOrder, ShardOutcome

POLL_S = 0.25
BUSY_POLL_S = 0.005  # while a look is under way
PRESENCE_S = 2.0
CONTROL_S = 1.0
NODES_S = 2.0
RECORDS_PER_LOOK = 64


class Pool(Protocol):
    """What the loop asks of the actors."""

    @property
    def num_ready(self) -> int:
        """Workers that take shards."""

    def start(self, worker: str) -> None:
        """Ask for a worker."""

    def assign(self, worker: str, order: ShardOrder) -> None:
        """Have a worker attempt a shard; never raises because it is gone."""

    def end(self, worker: str) -> None:
        """Kill a worker and forget it."""

    def kill(self, worker: str) -> None:
        """The same for one that may not hear Ray."""

    def poll(self, timeout_s: float) -> list[Notice]:
        """What happened, waiting at most so long."""


class Nodes(Protocol):
    """What the loop asks about the cluster's nodes."""

    def draining(self) -> Mapping[str, float | None] | None:
        """Draining nodes, with the seconds left; None if nobody can say."""

    def is_alive(self, node: str) -> bool:
        """Whether a node lives."""


class StopRequests(Protocol):
    """Whether somebody asked this process to stop."""

    @property
    def wants_drain(self) -> bool:
        """Soon, resumable."""

    @property
    def wants_cancel(self) -> bool:
        """Now."""


@dataclass(slots=True, kw_only=True)
class Ending:
    """How the loop ended, as far as it was told."""

    seal: Seal | None = None
    given_up: dict[int, str] = field(default_factory=dict)
    last: instructions.Instruction | None = None
    errors: instructions.StopForErrors | None = None
    refusal: str | None = None
    """Why the last worker that was refused was."""
    num_joined: int = 0


@dataclass(slots=True, kw_only=True)
class Loop:
    """Runs a scheduler over a pool until the scheduler is over."""

    ledger: Ledger
    scheduler: Scheduler
    pool: Pool
    nodes: Nodes
    tracker: Tracker
    progress: ProgressSink
    stop_requests: StopRequests
    clock: Callable[[], float]
    refuse_at_once: bool
    """A worker that is refused before any has joined ends the run: all would be."""
    looks: Looks = field(default_factory=Looks)
    ending: Ending = field(default_factory=Ending)
    _drain_notices: DrainNotices = field(default_factory=DrainNotices)
    _asked: set[Request] = field(default_factory=set)
    _due: dict[str, float] = field(default_factory=dict)
    _losing: set[str] = field(default_factory=set)
    """Workers that are gone, and after whose last breath storage is being asked."""

    def run(self, *, unread: Sequence[int] = ()) -> None:
        """Until the end. `unread`: shards whose records were listed and have to be read."""
        self._handle(events.Tick(now=self.clock()))
        self._read_records(unread)
        while not self.scheduler.is_over:
            self._turn()

    def _turn(self) -> None:
        for notice in self.pool.poll(BUSY_POLL_S if self.looks.num_pending else POLL_S):
            for event in self._events(notice):
                self._handle(event)
        for event in self.looks.finished():
            self._handle(event)
        self._look_for_stop()
        self._look_around()
        self._handle(events.Tick(now=self.clock()))
        self._tell()

    # Instructions

    def _handle(self, event: events.Event) -> None:
        for instruction in self.scheduler.handle(event):
            self._execute(instruction)

    def _execute(self, instruction: instructions.Instruction) -> None:
        match instruction:
            case instructions.StartWorker():
                self.pool.start(instruction.worker)
            case instructions.Assign():
                self.pool.assign(instruction.worker, _order(instruction))
            case instructions.EndWorker():
                self._end(instruction)
            case instructions.Release():
                self.pool.end(instruction.worker)
                self.tracker.left(instruction.worker)
            case instructions.Seal():
                self.ending.seal = patiently(self.ledger.seal)
            case _:
                self._note(instruction)

    def _note(self, instruction: instructions.Instruction) -> None:
        """Instructions that are only told, and the last ones."""
        match instruction:
            case instructions.GiveUp(shard=shard, reason=reason):
                self.ending.given_up[shard] = reason
                self.progress.message(f"shard {shard} is given up: {reason}")
            case instructions.Convict(shard=shard, row=row):
                self.progress.message(
                    f"row {row} of shard {shard} ended its workers when it was decoded alone; it "
                    "becomes an error row"
                )
            case instructions.Park(worker=worker, reason=reason):
                self.progress.message(f"{worker} gets no more shards and keeps its place: {reason}")
            case instructions.StopForErrors(errors=errors, samples=samples):
                self.ending.errors = instruction
                self.progress.message(
                    f"{errors} of {samples} samples are errors, more than "
                    "retry.max_error_fraction allows: draining"
                )
            case _:
                self.ending.last = instruction

    # Workers

    def _events(self, notice: Notice) -> Iterator[events.Event]:
        now = self.clock()
        match notice:
            case Placed():
                yield events.WorkerPlaced(worker=notice.worker, node=notice.node, now=now)
            case Joined():
                self.ending.num_joined += 1
                self.tracker.joined(now)
                yield events.WorkerJoined(worker=notice.worker, now=now)
            case Heard():
                self.tracker.heard(notice.worker, notice.heartbeat)
                yield _heard(notice, now=now)
            case Refused():
                yield from self._refused(notice)
            case Reported():
                yield from self._reported(notice.worker, notice.outcome)
            case Gone():
                yield events.WorkerEnded(worker=notice.worker, now=now)
                self._lose(notice)

    def _refused(self, notice: Refused) -> Iterator[events.Event]:
        self.ending.refusal = notice.sentence
        self.progress.message(notice.sentence)
        if self.refuse_at_once and not self.ending.num_joined:
            yield events.CancelRequested(now=self.clock())
        else:
            yield events.WorkerLost(worker=notice.worker, cause="infrastructure", now=self.clock())

    def _end(self, instruction: instructions.EndWorker) -> None:
        self.pool.kill(instruction.worker)
        self._lose(
            Gone(
                worker=instruction.worker,
                cause=instruction.cause,
                message=instruction.message,
            )
        )

    def _lose(self, gone: Gone) -> None:
        """Ask storage after a worker's last breath; then its shards go back to the queue."""
        if gone.worker in self._losing:
            return
        self._losing.add(gone.worker)
        leases = self.scheduler.leases_of(gone.worker)
        held = ", ".join(str(lease.shard) for lease in leases) or "none"
        self.progress.message(f"{gone.worker} is gone ({gone.message}); shards it held: {held}")
        look = partial(
            look_after,
            gone,
            leases=leases,
            running=self.tracker.left(gone.worker),
            is_excused=gone.node in self._drain_notices,
            ledger=self.ledger,
            nodes=self.nodes,
        )
        self.looks.begin(look, self._lost)

    def _lost(self, loss: Loss) -> Iterator[events.Event]:
        new = [record for record in loss.records if self.tracker.committed(record)]
        yield self._counted(new)
        yield events.WorkerLost(
            worker=loss.worker,
            cause=loss.cause,
            committed=frozenset(record.shard for record in loss.records),
            announced=loss.announced,
            now=self.clock(),
        )

    # Shards

    def _reported(self, worker: str, outcome: ShardOutcome) -> Iterator[events.Event]:
        if outcome.status != "failed":
            look = partial(self.ledger.record, outcome.shard)
            self.looks.begin(look, partial(self._confirmed, worker, outcome))
            return
        self.progress.message(f"shard {outcome.shard} failed on {worker}: {outcome.error}")
        if outcome.is_worker_usable:
            yield self._failed(worker, outcome, error=outcome.error or "no reason")
        else:  # its engine is broken: whatever it holds is lost with it, this shard included
            self.pool.end(worker)
            yield events.WorkerEnded(worker=worker, now=self.clock())
            message = outcome.error or "its engine is broken"
            self._lose(Gone(worker=worker, cause="death", message=message, left_records=True))

    def _failed(self, worker: str, outcome: ShardOutcome, *, error: str) -> events.Event:
        return events.ShardFailed(
            worker=worker,
            shard=outcome.shard,
            error=error,
            infrastructure=outcome.infrastructure,
            now=self.clock(),
        )

    def _confirmed(
        self, worker: str, outcome: ShardOutcome, record: CommitRecord | None
    ) -> Iterator[events.Event]:
        if record is None:
            yield events.ShardFailed(
                worker=worker,
                shard=outcome.shard,
                error=f"{worker} reported a commit that storage does not have",
                infrastructure=True,
                now=self.clock(),
            )
            return
        self.tracker.committed(record, worker=worker)
        kind = events.ShardCommitted if record.attempt == outcome.attempt else events.ShardLost
        yield kind(
            worker=worker,
            shard=record.shard,
            attempt=record.attempt,
            ok=record.ok,
            errors=record.errors,
            now=self.clock(),
        )

    def _read_records(self, shards: Sequence[int]) -> None:
        """Read what was committed before, beside the work; it counts for people and for errors."""
        for first in range(0, len(shards), RECORDS_PER_LOOK):
            some = shards[first : first + RECORDS_PER_LOOK]
            self.looks.begin(partial(self._records, some), self._were_committed)

    def _records(self, shards: Sequence[int]) -> list[CommitRecord]:
        found = [self.ledger.record(shard) for shard in shards]
        return [record for record in found if record is not None]

    def _were_committed(self, records: Sequence[CommitRecord]) -> Iterator[events.Event]:
        yield self._counted([record for record in records if self.tracker.committed(record)])

    def _counted(self, records: Sequence[CommitRecord]) -> events.Event:
        return events.SamplesCounted(
            ok=sum(record.ok for record in records),
            errors=sum(record.errors for record in records),
            now=self.clock(),
        )

    # What others ask for, and what they are told

    def _look_for_stop(self) -> None:
        if self.stop_requests.wants_cancel or "cancel" in self._asked:
            self._handle(events.CancelRequested(now=self.clock()))
        elif self.stop_requests.wants_drain or "drain" in self._asked:
            if not self.scheduler.is_draining:
                self.progress.message(
                    f"draining: {self.scheduler.num_leased} shards are finished, no other is "
                    "begun; Ctrl-C twice ends the run at once"
                )
            self._handle(events.DrainRequested(now=self.clock()))

    def _look_around(self) -> None:
        if self._is_due("control", every_s=CONTROL_S):
            self.looks.begin(self.ledger.requests, self._were_asked)
        if self._is_due("nodes", every_s=NODES_S):
            self.looks.begin(self.nodes.draining, self._saw_nodes)

    def _were_asked(self, requests: set[Request]) -> Iterator[events.Event]:
        self._asked |= requests
        return iter(())

    def _saw_nodes(self, draining: Mapping[str, float | None] | None) -> Iterator[events.Event]:
        yield from self._drain_notices.events(draining, now=self.clock())

    def _is_due(self, what: str, *, every_s: float) -> bool:
        now = self.clock()
        if now < self._due.get(what, 0.0):
            return False
        self._due[what] = now + every_s
        return True

    def _tell(self) -> None:
        if not self._is_due("progress", every_s=POLL_S):
            return
        presence = self.tracker.presence(num_workers=self.pool.num_ready, now=self.clock())
        self.progress.update(presence)
        if self._is_due("presence", every_s=PRESENCE_S):
            self.looks.begin(partial(self.ledger.store_presence, presence), _nothing)

    def say_farewell(self) -> None:
        """Tell everybody that this driver is leaving; the pool is empty by now."""
        self.looks.close()
        presence = self.tracker.presence(num_workers=0, now=self.clock(), finished=True)
        self.progress.update(presence)
        self.ledger.store_presence(presence)


def _nothing(value: None) -> Iterator[events.Event]:
    return iter(())


def _order(instruction: instructions.Assign) -> ShardOrder:
    return ShardOrder(
        shard=instruction.shard,
        row_by_row=instruction.row_by_row,
        convicted=instruction.convicted,
    )


def _heard(notice: Heard, *, now: float) -> events.Event:
    beat = notice.heartbeat
    running = tuple(
        events.Progress(
            shard=attempt.shard,
            phase=attempt.phase,
            num_rounds=beat.num_steps if attempt.phase == "decoding" else 0,
            fraction=attempt.fraction,
        )
        for attempt in beat.running
    )
    return events.WorkerHeard(worker=notice.worker, running=running, now=now)
