"""The actors of a run: started, asked, supervised and ended; it decides nothing about shards.

An actor is one process life: Ray restarts none and retries no call. Of every actor the pool holds
the calls that have not come back; `poll` waits for one of them, never longer than it is told. A
call that raises, whatever Ray makes of it, ends the actor, and so does a verdict of its `Watch`.

    report -> (versions compared) -> start -> Joined -> run_shard ... -> Reported
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from jobs.driver.notices import Gone, Joined, Notice, Refused, Reported
from jobs.driver.processes import kill_if_here
from jobs.driver.watch import Deadlines, Verdict, Watch
from workers.actor import HEARTBEAT_GROUP, SHARDS_GROUP, Heartbeat, Worker, WorkerConfig
from workers.environment import EnvironmentReport, ProcessIdentity, check_environment
from workers.errors import VersionError
from workers.stream import Totals

BEAT_S = 1.0
FETCH_S = 30.0  # a result that is ready is small; it has to arrive within this
Call = Literal["report", "start", "run_shard", "heartbeat"]


@dataclass(slots=True, kw_only=True)
class Seat:
    """One actor and its calls that have not come back."""

    worker: str
    actor: Any
    watch: Watch
    calls: dict[Any, Call] = field(default_factory=dict)
    process: ProcessIdentity | None = None
    is_ready: bool = False
    beat_at: float = 0.0
    heartbeat: Heartbeat = field(
        default_factory=lambda: Heartbeat(running=(), num_steps=0, totals=Totals())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """What every worker of a run has in common."""

    config: Callable[[str], WorkerConfig]
    """A worker's configuration by its name."""
    environment: EnvironmentReport
    """The driver's own."""
    num_cpus: int
    capacity: int
    deadlines: Deadlines


class RayPool:
    """Actors on the cluster that Ray is connected to."""

    def __init__(self, settings: PoolSettings) -> None:
        import ray

        self._ray = ray
        self._settings = settings
        self._actor_class = ray.remote(
            num_cpus=settings.num_cpus,
            max_restarts=0,
            max_task_retries=0,
            concurrency_groups={SHARDS_GROUP: settings.capacity, HEARTBEAT_GROUP: 1},
        )(Worker)
        self._seats: dict[str, Seat] = {}
        self._num_started = 0

    @property
    def num_ready(self) -> int:
        """Workers that take shards."""
        return sum(seat.is_ready for seat in self._seats.values())

    def heartbeats(self) -> dict[str, Heartbeat]:
        """The last one of every worker, by name."""
        return {seat.worker: seat.heartbeat for seat in self._seats.values()}

    def start(self) -> str:
        """Ask for one more worker; it joins, is refused or is gone, later."""
        self._num_started += 1
        worker = f"worker-{self._num_started:04d}"
        seat = Seat(
            worker=worker,
            actor=self._actor_class.remote(self._settings.config(worker)),
            watch=Watch(deadlines=self._settings.deadlines, began=time.monotonic()),
        )
        self._seats[worker] = seat
        seat.calls[seat.actor.report.remote()] = "report"
        return worker

    def assign(self, worker: str, *, shard: int) -> None:
        """Have a worker attempt a shard; nothing if it is gone, of which a notice tells."""
        seat = self._seats.get(worker)
        if seat is not None:
            method = seat.actor.run_shard.options(concurrency_group=SHARDS_GROUP)
            seat.calls[method.remote(shard)] = "run_shard"

    def end(self, worker: str) -> None:
        """Kill a worker and forget it."""
        seat = self._seats.pop(worker, None)
        if seat is not None:
            self._ray.kill(seat.actor, no_restart=True)

    def end_all(self) -> None:
        """Kill all."""
        for worker in list(self._seats):
            self.end(worker)

    def poll(self, timeout_s: float) -> list[Notice]:
        """What happened, waiting at most so long for the first of it."""
        self._beat(time.monotonic())
        ready = self._ready_calls(timeout_s)
        notices = [
            notice
            for seat in list(self._seats.values())
            for call in [call for call in seat.calls if call in ready]
            for notice in self._settle(seat, call)
        ]
        return notices + list(self._judge(time.monotonic()))

    def _ready_calls(self, timeout_s: float) -> set[Any]:
        calls = [call for seat in self._seats.values() for call in seat.calls]
        if not calls:
            time.sleep(timeout_s)
            return set()
        self._ray.wait(calls, num_returns=1, timeout=timeout_s, fetch_local=False)
        ready, _ = self._ray.wait(calls, num_returns=len(calls), timeout=0, fetch_local=False)
        return set(ready)

    def _beat(self, now: float) -> None:
        for seat in self._seats.values():
            if seat.is_ready and now >= seat.beat_at and "heartbeat" not in seat.calls.values():
                method = seat.actor.heartbeat.options(concurrency_group=HEARTBEAT_GROUP)
                seat.calls[method.remote()] = "heartbeat"
                seat.beat_at = now + BEAT_S

    def _settle(self, seat: Seat, call: Any) -> Iterator[Notice]:
        if seat.worker not in self._seats:  # ended by an earlier call of the same poll
            return
        kind = seat.calls.pop(call)
        try:
            value = self._ray.get(call, timeout=FETCH_S)
        except self._ray.exceptions.RayError as error:
            yield self._gone(seat, _verdict(error))
            return
        yield from self._arrived(seat, kind, value)

    def _arrived(self, seat: Seat, kind: Call, value: Any) -> Iterator[Notice]:
        if kind == "report":
            seat.process = value.process
            yield from self._compare(seat, value)
        elif kind == "start":
            yield self._started(seat, refusal=value.refusal)
        elif kind == "heartbeat":
            seat.heartbeat = value
            seat.watch.answered(value, now=time.monotonic())
        else:
            yield Reported(worker=seat.worker, outcome=value)

    def _compare(self, seat: Seat, report: EnvironmentReport) -> Iterator[Notice]:
        try:
            check_environment(report, name=seat.worker, driver=self._settings.environment)
        except VersionError as error:
            yield self._refused(seat, str(error))
        else:
            seat.calls[seat.actor.start.remote()] = "start"

    def _started(self, seat: Seat, *, refusal: str | None) -> Notice:
        if refusal is not None:
            return self._refused(seat, f"worker {seat.worker} cannot do the job: {refusal}")
        seat.is_ready = True
        seat.watch.joined(time.monotonic())
        return Joined(worker=seat.worker)

    def _refused(self, seat: Seat, sentence: str) -> Notice:
        self.end(seat.worker)
        return Refused(worker=seat.worker, sentence=sentence)

    def _judge(self, now: float) -> Iterator[Notice]:
        for seat in list(self._seats.values()):
            verdict = seat.watch.verdict(now)
            if verdict is not None:
                yield self._gone(seat, verdict)
                if seat.process is not None:
                    kill_if_here(seat.process)

    def _gone(self, seat: Seat, verdict: Verdict) -> Notice:
        self.end(seat.worker)
        return Gone(
            worker=seat.worker,
            reason=verdict.reason,
            message=verdict.message,
            running=seat.heartbeat.running,
        )


def _verdict(error: Exception) -> Verdict:
    """What Ray's error says: a preempted node is nobody's fault, any other death may be."""
    is_preempted = bool(getattr(error, "preempted", False))
    first_line = str(error).strip().partition("\n")[0]
    return Verdict(
        reason="infrastructure" if is_preempted else "death",
        message=f"{type(error).__name__}: {first_line}",
    )
