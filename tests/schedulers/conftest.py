"""A scheduler whose invariants are checked after every test."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from schedulers.limits import Limits
from schedulers.machine import Scheduler
from schedulers.suspicion import Death

Make = Callable[..., Scheduler]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes schedulers; teardown proves the invariants of all, and that histories replay."""
    made: list[tuple[Scheduler, Callable[[], Scheduler]]] = []

    def build(
        *costs: float,
        committed: Iterable[int] = (),
        num_workers: int = 1,
        deaths: Iterable[Death] = (),
        **limits: Any,
    ) -> Scheduler:
        def again() -> Scheduler:
            return Scheduler(
                enumerate(costs),
                committed=list(committed),
                num_workers=num_workers,
                deaths=list(deaths),
                limits=Limits(**limits),
            )

        scheduler = again()
        made.append((scheduler, again))
        return scheduler

    yield build
    for scheduler, again in made:
        scheduler.check()
        assert scheduler.history.is_complete
        replayed = again()
        for event, instructions in scheduler.history:
            assert tuple(replayed.handle(event)) == instructions
        replayed.check()
