"""The driver's loop: notices of the pool become events, instructions of the scheduler become calls.

Between the two stands storage: before the scheduler hears that a shard is committed, its record was
read; before a lost worker's shards go back to the queue, records are looked for that it may have
written with its last breath.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, Protocol

from jobs.driver.errors import RefusedWorkerError
from jobs.driver.notices import Gone, Joined, Notice, Refused, Reported
from jobs.driver.tracker import Tracker
from jobs.progress import ProgressSink
from manifests.errors import ManifestError
from manifests.journal import write_failure, write_presence
from manifests.keys import new_attempt_id
from manifests.open_revision import OpenRevision
from manifests.records import Failure, Presence, Seal
from schedulers import events, instructions
from schedulers.machine import Scheduler
from workers.actor import Heartbeat
from workers.attempt import ShardOutcome

POLL_S = 0.25
PRESENCE_S = 2.0


class Pool(Protocol):
    """What the loop asks of the actors."""

    @property
    def num_ready(self) -> int:
        """Workers that take shards."""

    def heartbeats(self) -> Mapping[str, Heartbeat]:
        """The last one of every worker."""

    def start(self) -> str:
        """Ask for one more worker."""

    def assign(self, worker: str, *, shard: int) -> None:
        """Have a worker attempt a shard; never raises because it is gone."""

    def end(self, worker: str) -> None:
        """Kill a worker and forget it."""

    def poll(self, timeout_s: float) -> list[Notice]:
        """What happened, waiting at most so long."""


class StopRequests(Protocol):
    """How often somebody asked the driver to stop."""

    @property
    def num_received(self) -> int:
        """One is a drain, two is the end."""


@dataclass(slots=True, kw_only=True)
class Loop:
    """Runs a scheduler over a pool until the scheduler is over, or twice asked to stop."""

    revision: OpenRevision
    scheduler: Scheduler
    pool: Pool
    tracker: Tracker
    progress: ProgressSink
    stop_requests: StopRequests
    clock: Callable[[], float]
    num_workers: int
    refuse_at_once: bool
    """A worker that is refused before any has joined ends the run: all would be."""
    seal: Seal | None = None
    given_up: dict[int, str] = field(default_factory=dict)
    is_drained: bool = False
    is_cancelled: bool = False
    _refusal: str | None = None
    _num_joined: int = 0
    _presence_at: float = 0.0

    def run(self) -> None:
        """Until the end."""
        for _ in range(self.num_workers):
            self.pool.start()
        self._handle(events.Tick(now=self.clock()))
        while not (self.scheduler.is_over or self.is_cancelled):
            for notice in self.pool.poll(POLL_S):
                for event in self._events(notice):
                    self._handle(event)
            self._look_for_stop()
            self._handle(events.Tick(now=self.clock()))
            self._tell()
        self._require_some_worker()

    def _handle(self, event: events.Event) -> None:
        for instruction in self.scheduler.handle(event):
            self._execute(instruction)

    def _execute(self, instruction: instructions.Instruction) -> None:
        match instruction:
            case instructions.Assign():
                self.pool.assign(instruction.worker, shard=instruction.shard)
            case instructions.ReplaceWorker():
                self.pool.start()
            case instructions.Release():
                self.pool.end(instruction.worker)
            case instructions.GiveUp():
                self.given_up[instruction.shard] = instruction.reason
                self.progress.message(
                    f"shard {instruction.shard} is given up: {instruction.reason}"
                )
            case instructions.Seal():
                self.seal = self.revision.seal()
            case instructions.Drained():
                self.is_drained = True
            case instructions.Finished():
                pass

    def _events(self, notice: Notice) -> Iterator[events.Event]:
        match notice:
            case Joined():
                self._num_joined += 1
                self.tracker.joined(self.clock())
                yield events.WorkerJoined(worker=notice.worker, now=self.clock())
            case Refused():
                yield from self._refused(notice)
            case Reported(outcome=outcome) if outcome.status == "failed":
                yield from self._failed(notice.worker, outcome)
            case Reported():
                yield self._confirm(notice.worker, outcome=notice.outcome)
            case Gone():
                yield from self._gone(notice)

    def _refused(self, notice: Refused) -> Iterator[events.Event]:
        if self.refuse_at_once and not self._num_joined:
            raise RefusedWorkerError(notice.sentence)
        self._refusal = notice.sentence
        self.progress.message(notice.sentence)
        yield events.WorkerLost(worker=notice.worker, reason="infrastructure", now=self.clock())

    def _require_some_worker(self) -> None:
        """A run in which every worker was refused did not fail for the shards' sake."""
        if self._refusal is not None and not self._num_joined and self.given_up:
            raise RefusedWorkerError(self._refusal)

    def _failed(self, worker: str, outcome: ShardOutcome) -> Iterator[events.Event]:
        self.progress.message(f"shard {outcome.shard} failed on {worker}: {outcome.error}")
        if not outcome.is_worker_usable:
            # Its engine is broken: whatever it holds is lost with it, this shard included.
            yield from self._lost(worker, reason="death")
            return
        yield events.ShardFailed(
            worker=worker,
            shard=outcome.shard,
            error=outcome.error or "no reason",
            infrastructure=outcome.infrastructure,
            now=self.clock(),
        )

    def _confirm(self, worker: str, *, outcome: ShardOutcome) -> events.Event:
        record = self.revision.read_record(outcome.shard)
        if record is None:
            error = f"{worker} reported a commit that storage does not have"
            return events.ShardFailed(
                worker=worker,
                shard=outcome.shard,
                error=error,
                infrastructure=True,
                now=self.clock(),
            )
        self.tracker.committed(record, worker=worker)
        kind = events.ShardCommitted if record.attempt == outcome.attempt else events.ShardLost
        return kind(worker=worker, shard=record.shard, attempt=record.attempt, now=self.clock())

    def _gone(self, notice: Gone) -> Iterator[events.Event]:
        held = self.scheduler.shards_of(notice.worker)
        self.progress.message(
            f"{notice.worker} is gone ({notice.message}); shards it held: {sorted(held) or 'none'}"
        )
        attempts = {running.shard: running.attempt for running in notice.running}
        for shard in held:
            self._leave_failure(notice, shard=shard, attempt=attempts.get(shard))
        yield from self._lost(notice.worker, reason=notice.reason)

    def _leave_failure(self, notice: Gone, *, shard: int, attempt: str | None) -> None:
        failure = Failure(
            shard=shard,
            revision=self.revision.number,
            attempt=attempt or new_attempt_id(),
            kind="rows" if notice.reason == "death" else "infrastructure",
            error_class="WorkerLost",
            message=notice.message,
            worker=notice.worker,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        with suppress(OSError, ManifestError):  # it only informs
            write_failure(self.revision.store, failure)

    def _lost(
        self, worker: str, *, reason: Literal["death", "infrastructure"]
    ) -> Iterator[events.Event]:
        """The end of a worker, with the shards that it committed with its last breath."""
        self.pool.end(worker)
        committed = set()
        for shard in self.scheduler.shards_of(worker):
            record = self.revision.read_record(shard)
            if record is not None:
                self.tracker.committed(record, worker=worker)
                committed.add(shard)
        yield events.WorkerLost(
            worker=worker, reason=reason, committed=frozenset(committed), now=self.clock()
        )

    def _look_for_stop(self) -> None:
        if self.stop_requests.num_received > 1:
            self.is_cancelled = True
        elif self.stop_requests.num_received == 1 and not self.scheduler.is_draining:
            self.progress.message(
                f"draining: {self.scheduler.num_leased} shards are finished, no other is begun; "
                f"a second signal ends the run at once"
            )
            self._handle(events.DrainRequested(now=self.clock()))

    def _tell(self) -> None:
        now = self.clock()
        presence = self.tracker.presence(
            self.pool.heartbeats(), num_workers=self.pool.num_ready, now=now
        )
        self.progress.update(presence)
        if now >= self._presence_at:
            self._presence_at = now + PRESENCE_S
            self._store_presence(presence)

    def say_farewell(self) -> None:
        """Tell everybody that this driver is leaving; the pool is empty by now."""
        presence = self.tracker.presence({}, num_workers=0, now=self.clock(), finished=True)
        self.progress.update(presence)
        self._store_presence(presence)

    def _store_presence(self, presence: Presence) -> None:
        with suppress(OSError, ManifestError):  # it only informs
            write_presence(self.revision.store, presence)
