"""The real protocol, two at a time: every order in which two processes can make their requests.

Each request of an actor waits for its turn; an order says whose turn it is. Nothing is timed.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from threading import Condition, Thread
from typing import Any

import pytest

from manifests.garbage import delete_all, find_garbage
from manifests.open_revision import OpenRevision
from manifests.protocol import read_record, seal_job
from manifests.store import MemoryStore, Store
from manifests.verification import verify_structure
from tests.manifests.builders import StoredJob, make_job

REQUESTS = frozenset({"put_if_absent", "put_file_if_absent", "get", "list", "delete"})
LIMIT_S = 60.0
Actor = Callable[[StoredJob], object]


class Turns:
    """Whose request comes next; who has ended needs no turn any more."""

    def __init__(self, order: Sequence[int]) -> None:
        self._order = list(order)
        self._ended: set[int] = set()
        self._changed = Condition()

    def wait(self, actor: int) -> None:
        """Return when it is this actor's turn, which is over when it asks for the next one."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._is_next(actor), LIMIT_S)
            if self._order:
                self._order.pop(0)
            self._changed.notify_all()

    def _is_next(self, actor: int) -> bool:
        while self._order and self._order[0] in self._ended:
            self._order.pop(0)
        return not self._order or self._order[0] == actor

    def end(self, actor: int) -> None:
        """The actor makes no request any more."""
        with self._changed:
            self._ended.add(actor)
            self._changed.notify_all()


class TurnStore:
    """Each request waits for its turn."""

    def __init__(self, inner: Store, turns: Turns, *, actor: int) -> None:
        self._inner = inner
        self._turns = turns
        self._actor = actor

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in REQUESTS:
            return method

        def request(*arguments: Any) -> Any:
            self._turns.wait(self._actor)
            return method(*arguments)

        return request


def orders(first: int, second: int) -> Iterator[list[int]]:
    """All ways to merge so many requests of actor 0 with so many of actor 1."""
    for places in combinations(range(first + second), first):
        yield [0 if place in places else 1 for place in range(first + second)]


def act(job: StoredJob, actors: Sequence[Actor], order: Sequence[int]) -> None:
    """Let the actors make their requests in an order; what one raises is raised."""
    turns, errors = Turns(order), list[BaseException]()

    def run(number: int, actor: Actor) -> None:
        store = TurnStore(job.store, turns, actor=number)
        try:
            actor(StoredJob(store=store, plan=job.plan, rows=job.rows, scratch=job.scratch))
        except BaseException as error:
            errors.append(error)
        finally:
            turns.end(number)

    threads = [Thread(target=run, args=(n, actor)) for n, actor in enumerate(actors)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    if errors:
        raise errors[0]


def attempt(job: StoredJob, name: str) -> Actor:
    """An attempt at shard 0 whose file is ready."""
    path = job.attempt_file(0, attempt=name)
    record = job.record(0, attempt=name, path=path)
    return lambda mine: OpenRevision(store=mine.store, plan=mine.plan).commit(
        record, data_path=path
    )


@pytest.fixture
def new_job(tmp_path: Path) -> Callable[[], StoredJob]:
    """Planned jobs in memory."""
    return lambda: make_job(tmp_path, store=MemoryStore())


def test_of_two_attempts_in_any_order_one_commits_and_the_other_leaves_nothing(
    new_job: Callable[[], StoredJob],
) -> None:
    winners = set()
    for order in orders(3, 3):
        job = new_job()
        act(job, [attempt(job, "a" * 16), attempt(job, "b" * 16)], order)
        record = read_record(job.store, job.plan, 0)
        assert record is not None
        assert job.store.list("data/") == [record.data_key]
        assert verify_structure(job.store) == []
        winners.add(record.attempt[0])
    assert winners == {"a", "b"}


def collect(job: StoredJob) -> None:
    """One pass of the garbage collection."""
    delete_all(job.store, find_garbage(job.store, job.plan))


def seal(job: StoredJob) -> None:
    """Seal the first run as soon as it can be."""
    if len(job.store.list("commits/")) == len(job.plan.shards):
        seal_job(job.store, job.plan)


@pytest.mark.parametrize("other", [collect, seal], ids=lambda actor: actor.__name__)
def test_an_attempt_beside_a_collection_or_a_seal_ends_well_in_any_order(
    new_job: Callable[[], StoredJob], other: Actor
) -> None:
    for order in orders(3, 6):  # a collection lists four times, and then looks
        job = new_job()
        job.commit(1)
        act(job, [attempt(job, "a" * 16), other], order)
        record = read_record(job.store, job.plan, 0)
        assert record is not None
        assert record.attempt == "a" * 16
        assert verify_structure(job.store) == []
        seal_job(job.store, job.plan)
        collect(job)
        assert verify_structure(job.store) == []
