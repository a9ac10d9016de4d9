"""A scheduler whose invariants are checked after every test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from schedulers.machine import Scheduler

Make = Callable[..., Scheduler]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes schedulers; teardown proves the invariants of all, and that histories replay."""
    made: list[tuple[Scheduler, tuple[Any, ...], dict[str, Any]]] = []

    def build(*costs: float, **options: Any) -> Scheduler:
        settings = {"attempts": 2} | options
        scheduler = Scheduler(enumerate(costs), **settings)
        made.append((scheduler, costs, settings))
        return scheduler

    yield build
    for scheduler, costs, settings in made:
        scheduler.check()
        replayed = Scheduler(enumerate(costs), **settings)
        for event, instructions in scheduler.history:
            assert tuple(replayed.handle(event)) == instructions
        replayed.check()
