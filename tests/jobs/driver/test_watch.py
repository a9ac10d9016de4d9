"""Supervision: each phase has its own deadline; only its own fault is held against a worker."""

import pytest

from jobs.driver.watch import Deadlines, Watch
from workers.actor import Heartbeat
from workers.attempt import Attempt, Phase
from workers.stream import Totals

DEADLINES = Deadlines(starting_s=100, silence_s=10, decoding_s=50, publishing_s=30)


def beat(*phases: Phase, num_steps: int = 0) -> Heartbeat:
    running = tuple(
        Attempt(shard=index, attempt=f"{index:016x}", phase=phase)
        for index, phase in enumerate(phases)
    )
    return Heartbeat(running=running, num_steps=num_steps, totals=Totals())


@pytest.fixture
def watch() -> Watch:
    """Of a worker that was asked for at 0 and joined at 5."""
    watch = Watch(deadlines=DEADLINES, began=0.0)
    watch.joined(5.0)
    return watch


def reason(watch: Watch, *, now: float) -> str | None:
    verdict = watch.verdict(now)
    return None if verdict is None else verdict.reason


def test_a_worker_may_start_slowly_but_not_for_ever() -> None:
    watch = Watch(deadlines=DEADLINES, began=0.0)
    assert reason(watch, now=100.0) is None
    assert reason(watch, now=100.5) == "infrastructure"


def test_a_silent_worker_is_ended_and_nothing_is_held_against_its_shards(watch: Watch) -> None:
    assert reason(watch, now=15.0) is None
    assert reason(watch, now=15.5) == "infrastructure"


def test_answers_keep_a_worker_that_has_nothing_to_do(watch: Watch) -> None:
    for now in range(6, 200, 5):
        watch.answered(beat(), now=float(now))
        assert watch.verdict(float(now)) is None


def test_decoding_without_steps_is_held_against_the_shards(watch: Watch) -> None:
    for now in range(10, 66, 5):
        watch.answered(beat("decoding", num_steps=3), now=float(now))
    assert reason(watch, now=60.0) is None
    assert reason(watch, now=60.5) == "death"


def test_decoding_that_gets_on_may_take_any_time(watch: Watch) -> None:
    for now in range(10, 500, 5):
        watch.answered(beat("decoding", num_steps=now), now=float(now))
        assert watch.verdict(float(now)) is None


def test_publishing_has_to_end_whatever_the_engine_does_meanwhile(watch: Watch) -> None:
    for now in range(10, 46, 5):
        watch.answered(beat("publishing", "decoding", num_steps=now), now=float(now))
    assert reason(watch, now=40.0) is None
    assert reason(watch, now=40.5) == "infrastructure"


def test_a_phase_begins_anew_with_the_next_attempt(watch: Watch) -> None:
    watch.answered(beat("publishing"), now=10.0)
    watch.answered(beat(), now=38.0)
    watch.answered(beat("publishing"), now=39.0)
    assert watch.verdict(45.0) is None
