"""Looks run beside the loop, are patient with storage, and tell the loop what they raised."""

import threading
from collections.abc import Iterator

import pytest

from jobs.driver.looks import PAUSES_S, Looks, patiently
from manifests.errors import DamagedError
from schedulers.events import Event, Tick
from tests.workers.conditions import wait_for


@pytest.fixture
def looks() -> Iterator[Looks]:
    """Closed with the test."""
    looks = Looks(sleep=lambda pause_s: None)
    yield looks
    looks.close()


def ticks(value: int) -> Iterator[Event]:
    yield Tick(now=value)


def gathered(looks: Looks, *, num_events: int) -> list[Event]:
    events: list[Event] = []

    def is_there() -> bool:
        events.extend(looks.finished())
        return len(events) >= num_events

    wait_for(is_there, what=f"{num_events} events")
    return events


def test_a_look_that_has_ended_becomes_events(looks: Looks) -> None:
    looks.begin(lambda: 7, ticks)
    assert gathered(looks, num_events=1) == [Tick(now=7)]
    assert looks.num_pending == 0


def test_a_slow_look_does_not_hold_up_another(looks: Looks) -> None:
    gate = threading.Event()
    looks.begin(lambda: gate.wait(20) and 1, ticks)
    looks.begin(lambda: 2, ticks)
    assert gathered(looks, num_events=1) == [Tick(now=2)]
    assert looks.num_pending == 1
    gate.set()
    assert gathered(looks, num_events=1) == [Tick(now=1)]


def test_a_fault_of_storage_is_tried_again_at_growing_intervals() -> None:
    pauses: list[float] = []
    left = [OSError("gone")] * len(PAUSES_S)

    def look() -> int:
        if left:
            raise left.pop()
        return 5

    assert patiently(look, sleep=pauses.append) == 5
    assert pauses == sorted(PAUSES_S)


def test_a_fault_that_lasts_passes_through() -> None:
    def look() -> int:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        patiently(look, sleep=lambda pause_s: None)


def test_damage_is_told_at_once(looks: Looks) -> None:
    def look() -> int:
        raise DamagedError("commits/r0000/00000000.json: damaged")

    looks.begin(look, ticks)
    with pytest.raises(DamagedError, match="damaged"):
        wait_for(lambda: bool(list(looks.finished())), what="the damage")
