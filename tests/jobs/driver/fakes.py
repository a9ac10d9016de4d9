"""A pool that does what a script says, and a sink that remembers."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from jobs.driver.looks import Looks, Value
from jobs.driver.notices import Joined, Notice, Placed, Reported
from manifests.records import Presence
from schedulers.events import Event
from tests.manifests.builders import StoredJob
from workers.attempt import ShardOrder, ShardOutcome

Reaction = Callable[[str, int], list[Notice]]
NODE = "node"


@dataclass(slots=True)
class FakeStops:
    """Signals, as flags that a test changes."""

    wants_drain: bool = False
    wants_cancel: bool = False


@dataclass(slots=True)
class FakeNodes:
    """A cluster whose nodes a test changes."""

    drained: dict[str, float | None] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)

    def draining(self) -> Mapping[str, float | None]:
        return dict(self.drained)

    def is_alive(self, node: str) -> bool:
        return node not in self.dead


class FakeLooks(Looks):
    """Looks that have ended when they are begun: a scripted clock must not outrun real threads."""

    def begin(self, look: Callable[[], Value], then: Callable[[Value], Iterator[Event]]) -> None:
        super().begin(look, then)
        self._looks[-1].future.exception()


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
    """Workers whose starting and assignments lead to what the test says."""

    def __init__(self, *, on_start: Callable[[str], list[Notice]], on_assign: Reaction) -> None:
        self._on_start = on_start
        self._on_assign = on_assign
        self._notices: deque[list[Notice]] = deque()
        self.started: list[str] = []
        self.assigned: list[tuple[str, int]] = []
        self.orders: list[ShardOrder] = []
        self.ended: list[str] = []
        self.killed: list[str] = []

    @property
    def num_ready(self) -> int:
        return len(self.started) - len(self.ended)

    def start(self, worker: str) -> None:
        self.started.append(worker)
        self._notices.append(self._on_start(worker))

    def assign(self, worker: str, order: ShardOrder) -> None:
        self.assigned.append((worker, order.shard))
        self.orders.append(order)
        self._notices.append(self._on_assign(worker, order.shard))

    def end(self, worker: str) -> None:
        if worker not in self.ended:
            self.ended.append(worker)

    def kill(self, worker: str) -> None:
        self.killed.append(worker)
        self.end(worker)

    def end_all(self) -> None:
        for worker in self.started:
            self.end(worker)

    def poll(self, timeout_s: float) -> list[Notice]:
        return self._notices.popleft() if self._notices else []


def join(worker: str) -> list[Notice]:
    """A worker that comes up at once."""
    return [Placed(worker=worker, node=NODE), Joined(worker=worker)]


def commit(job: StoredJob) -> Reaction:
    """A worker that commits whatever it is given, and says so."""

    def react(worker: str, shard: int) -> list[Notice]:
        attempt = job.commit(shard).record.attempt
        outcome = ShardOutcome(shard=shard, attempt=attempt, status="committed")
        return [Reported(worker=worker, outcome=outcome)]

    return react
