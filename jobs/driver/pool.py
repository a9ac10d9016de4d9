"""The actors of a run: started, asked and ended; it decides nothing.

An actor is one process life: Ray restarts none and retries no call. Of every actor the pool holds
the calls that have not come back; `poll` waits for one of them, never longer than it is told. A
call that raises, whatever Ray makes of it, ends the actor.

    report -> (versions compared) -> Placed -> start -> Joined -> run_shard ... -> Reported
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from jobs.driver.notices import Gone, Heard, Joined, Notice, Placed, Refused, Reported
from jobs.driver.processes import kill_if_here
from workers.actor import HEARTBEAT_GROUP, SHARDS_GROUP, Placement, Worker, WorkerConfig
from workers.attempt import ShardOrder
from workers.environment import EnvironmentReport, ProcessIdentity, check_environment
from workers.errors import VersionError

FETCH_S = 30.0  # a result that is ready is small; it has to arrive within this
MAX_BEAT_S = 1.0
Call = Literal["report", "start", "run_shard", "heartbeat"]


@dataclass(slots=True, kw_only=True)
class Seat:
    """One actor and its calls that have not come back."""

    worker: str
    actor: Any
    calls: dict[Any, Call] = field(default_factory=dict)
    process: ProcessIdentity | None = None
    node: str | None = None
    is_ready: bool = False
    is_beating: bool = False
    beat_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """What every worker of a run has in common."""

    config: Callable[[str], WorkerConfig]
    """A worker's configuration by its name."""
    environment: EnvironmentReport
    """The driver's own."""
    num_cpus: float
    num_gpus: float = 0.0
    capacity: int
    lease_s: float
    """Heartbeats are asked for several times in this time (seconds)."""
    worker_class: type = Worker

    @property
    def beat_s(self) -> float:
        """Between a heartbeat and the next one (seconds)."""
        return min(MAX_BEAT_S, self.lease_s / 4.0)

    @property
    def resources(self) -> dict[str, float]:
        """What Ray reserves for a worker."""
        return {"CPU": self.num_cpus} | ({"GPU": self.num_gpus} if self.num_gpus else {})


class RayPool:
    """Actors on the cluster that Ray is connected to."""

    def __init__(self, settings: PoolSettings) -> None:
        import ray

        self._ray = ray
        self._settings = settings
        self._actor_class = ray.remote(
            num_cpus=settings.num_cpus,
            num_gpus=settings.num_gpus,
            max_restarts=0,
            max_task_retries=0,
            concurrency_groups={SHARDS_GROUP: settings.capacity, HEARTBEAT_GROUP: 1},
        )(settings.worker_class)
        self._seats: dict[str, Seat] = {}
        self._seat_of: dict[Any, Seat] = {}  # by call

    @property
    def num_ready(self) -> int:
        """Workers that take shards."""
        return sum(seat.is_ready for seat in self._seats.values())

    def start(self, worker: str) -> None:
        """Ask for a worker; it joins, is refused or is gone, later."""
        actor = self._actor_class.remote(self._settings.config(worker))
        seat = Seat(worker=worker, actor=actor)
        self._seats[worker] = seat
        self._expect(seat, actor.report.remote(), "report")

    def assign(self, worker: str, order: ShardOrder) -> None:
        """Have a worker attempt a shard; nothing if it is gone, of which a notice tells."""
        seat = self._seats.get(worker)
        if seat is not None:
            method = seat.actor.run_shard.options(concurrency_group=SHARDS_GROUP)
            self._expect(seat, method.remote(order), "run_shard")

    def _expect(self, seat: Seat, call: Any, kind: Call) -> None:
        seat.calls[call] = kind
        self._seat_of[call] = seat

    def end(self, worker: str) -> None:
        """Kill a worker and forget it."""
        seat = self._seats.pop(worker, None)
        if seat is None:
            return
        for call in seat.calls:
            del self._seat_of[call]
        self._ray.kill(seat.actor, no_restart=True)

    def kill(self, worker: str) -> None:
        """End a worker that may not hear Ray any more, and forget it."""
        seat = self._seats.get(worker)
        self.end(worker)
        if seat is not None and seat.process is not None:
            kill_if_here(seat.process)

    def end_all(self) -> None:
        """Kill all."""
        for worker in list(self._seats):
            self.end(worker)

    def poll(self, timeout_s: float) -> list[Notice]:
        """What happened, waiting at most so long for the first of it."""
        self._beat(time.monotonic())
        return [notice for call in self._ready_calls(timeout_s) for notice in self._settle(call)]

    def _ready_calls(self, timeout_s: float) -> list[Any]:
        calls = list(self._seat_of)
        if not calls:
            time.sleep(timeout_s)
            return []
        ready, rest = self._ray.wait(calls, num_returns=1, timeout=timeout_s, fetch_local=False)
        if ready and rest:  # what else has come back meanwhile
            more, _ = self._ray.wait(rest, num_returns=len(rest), timeout=0, fetch_local=False)
            ready += more
        return list(ready)

    def _beat(self, now: float) -> None:
        for seat in self._seats.values():
            if seat.is_ready and not seat.is_beating and now >= seat.beat_at:
                method = seat.actor.heartbeat.options(concurrency_group=HEARTBEAT_GROUP)
                self._expect(seat, method.remote(), "heartbeat")
                seat.is_beating, seat.beat_at = True, now + self._settings.beat_s

    def _settle(self, call: Any) -> Iterator[Notice]:
        seat = self._seat_of.pop(call, None)
        if seat is None:  # ended by an earlier call of the same poll
            return
        kind = seat.calls.pop(call)
        try:
            value = self._ray.get(call, timeout=FETCH_S)
        except self._ray.exceptions.RayError as error:
            yield self._gone(seat, error)
            return
        yield from self._arrived(seat, kind, value)

    def _arrived(self, seat: Seat, kind: Call, value: Any) -> Iterator[Notice]:
        if kind == "report":
            yield from self._placed(seat, value)
        elif kind == "start":
            yield self._started(seat, refusal=value.refusal)
        elif kind == "heartbeat":
            seat.is_beating = False
            yield Heard(worker=seat.worker, heartbeat=value)
        else:
            yield Reported(worker=seat.worker, outcome=value)

    def _placed(self, seat: Seat, placement: Placement) -> Iterator[Notice]:
        seat.process, seat.node = placement.environment.process, placement.node
        yield Placed(worker=seat.worker, node=placement.node)
        try:
            check_environment(
                placement.environment, name=seat.worker, driver=self._settings.environment
            )
        except VersionError as error:
            yield self._refused(seat, str(error))
        else:
            self._expect(seat, seat.actor.start.remote(), "start")

    def _started(self, seat: Seat, *, refusal: str | None) -> Notice:
        if refusal is not None:
            return self._refused(seat, f"worker {seat.worker} cannot do the job: {refusal}")
        seat.is_ready = True
        return Joined(worker=seat.worker)

    def _refused(self, seat: Seat, sentence: str) -> Notice:
        self.end(seat.worker)
        return Refused(worker=seat.worker, sentence=sentence)

    def _gone(self, seat: Seat, error: Exception) -> Notice:
        """A preempted node is nobody's fault; any other death may be."""
        self.end(seat.worker)
        first_line = str(error).strip().partition("\n")[0]
        return Gone(
            worker=seat.worker,
            cause="infrastructure" if getattr(error, "preempted", False) else "death",
            message=f"{type(error).__name__}: {first_line}",
            node=seat.node,
        )
