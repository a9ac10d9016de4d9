"""A pool that does what a script says, and a sink that remembers."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jobs.driver.notices import Joined, Notice, Reported
from manifests.records import Presence
from tests.manifests.builders import StoredJob
from workers.actor import Heartbeat
from workers.attempt import ShardOutcome

Reaction = Callable[[str, int], list[Notice]]


@dataclass(slots=True)
class FakeStops:
    """Signals, as a number that a test changes."""

    num_received: int = 0


@dataclass(slots=True)
class FakeSink:
    """Remembers what it is told."""

    updates: list[Presence] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def update(self, presence: Presence) -> None:
        self.updates.append(presence)

    def message(self, text: str) -> None:
        self.messages.append(text)


class FakePool:
    """Workers `w1`, `w2`, ...: what starting and assigning lead to is given by the test."""

    def __init__(self, *, on_start: Callable[[str], list[Notice]], on_assign: Reaction) -> None:
        self._on_start = on_start
        self._on_assign = on_assign
        self._notices: deque[list[Notice]] = deque()
        self.started: list[str] = []
        self.assigned: list[tuple[str, int]] = []
        self.ended: list[str] = []

    @property
    def num_ready(self) -> int:
        return len(self.started) - len(self.ended)

    def heartbeats(self) -> Mapping[str, Heartbeat]:
        return {}

    def start(self) -> str:
        worker = f"w{len(self.started) + 1}"
        self.started.append(worker)
        self._notices.append(self._on_start(worker))
        return worker

    def assign(self, worker: str, *, shard: int) -> None:
        self.assigned.append((worker, shard))
        self._notices.append(self._on_assign(worker, shard))

    def end(self, worker: str) -> None:
        if worker not in self.ended:
            self.ended.append(worker)

    def end_all(self) -> None:
        for worker in self.started:
            self.end(worker)

    def poll(self, timeout_s: float) -> list[Notice]:
        return self._notices.popleft() if self._notices else []


def join(worker: str) -> list[Notice]:
    """A worker that comes up at once."""
    return [Joined(worker=worker)]


def commit(job: StoredJob) -> Reaction:
    """A worker that commits whatever it is given, and says so."""

    def react(worker: str, shard: int) -> list[Notice]:
        attempt = job.commit(shard).record.attempt
        outcome = ShardOutcome(shard=shard, attempt=attempt, status="committed")
        return [Reported(worker=worker, outcome=outcome)]

    return react
