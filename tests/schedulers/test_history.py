"""What an error carries, and how long memory is."""

import pytest

from schedulers.errors import SchedulerError
from schedulers.history import History, Step
from tests.schedulers.conftest import Make
from tests.schedulers.stories import begun, heard, joined, tick


def test_the_oldest_steps_are_forgotten_and_that_shows() -> None:
    history = History(max_steps=2)
    for now in (1, 2):
        history.append(Step(tick(now), ()))
    assert history.is_complete
    history.append(Step(tick(3), ()))
    assert not history.is_complete
    assert [step.event.now for step in history] == [2, 3]
    assert (len(history), history.num_steps) == (2, 3)


def test_an_error_tells_what_happened_before(make: Make) -> None:
    scheduler = begun(make(1.0))
    with pytest.raises(SchedulerError, match="it is here already") as caught:
        scheduler.handle(joined(1))
    assert [type(step.event).__name__ for step in caught.value.history] == [
        "Tick",
        "WorkerPlaced",
        "WorkerJoined",
    ]
    assert "Assign(worker='worker-0001', shard=0" in str(caught.value)


def test_an_error_at_the_beginning_has_nothing_to_tell() -> None:
    assert str(SchedulerError("no", history=[])) == "no; what happened before: nothing"


def test_ticks_that_say_nothing_leave_no_history(make: Make) -> None:
    scheduler = begun(make(1.0))
    num_steps = scheduler.history.num_steps
    scheduler.handle(tick(1))
    assert scheduler.history.num_steps == num_steps
    scheduler.handle(heard(1, now=2))
    assert scheduler.history.num_steps == num_steps + 1
