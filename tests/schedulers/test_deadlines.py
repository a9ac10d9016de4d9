"""Silent and stuck workers are ended, each phase after its own time."""

import pytest

from schedulers.events import Cause, Phase
from schedulers.instructions import EndWorker
from tests.schedulers.conftest import Make
from tests.schedulers.stories import (
    assign,
    begun,
    committed,
    heard,
    joined,
    lost,
    placed,
    progress,
    start,
    tick,
    w,
)


def ended(number: int, message: str, *, cause: Cause = "infrastructure") -> EndWorker:
    return EndWorker(worker=w(number), cause=cause, message=message)


def test_a_silent_worker_is_ended_and_its_shards_are_given_out_again(make: Make) -> None:
    scheduler = begun(make(1.0, lease_s=30))
    assert scheduler.handle(tick(30)) == []
    assert scheduler.handle(tick(31)) == [ended(1, "did not answer within 30 s")]
    assert scheduler.handle(tick(40)) == []
    assert scheduler.handle(lost(1, cause="infrastructure", now=41)) == start(2)
    assert scheduler.handle(joined(2, now=41)) == assign(2, 0)


def test_every_answer_renews_the_lease(make: Make) -> None:
    scheduler = begun(make(1.0, lease_s=30))
    for now in (20, 40, 60):
        scheduler.handle(heard(1, now=now))
        assert scheduler.handle(tick(now + 10)) == []


def test_a_worker_that_does_not_become_ready_is_ended(make: Make) -> None:
    scheduler = make(1.0, starting_s=100)
    scheduler.handle(tick())
    scheduler.handle(placed(1, now=50))
    assert scheduler.handle(tick(150)) == []
    assert scheduler.handle(tick(151)) == [ended(1, "did not become ready within 100 s")]


@pytest.mark.parametrize(
    ("phase", "limit_s", "cause"),
    [
        ("reading", 600, "infrastructure"),
        ("decoding", 120, "stuck"),
        ("publishing", 600, "infrastructure"),
    ],
)
def test_each_phase_has_its_own_deadline_and_blame(
    make: Make, phase: Phase, limit_s: int, cause: Cause
) -> None:
    scheduler = begun(make(1.0, lease_s=1e9, decoding_s=120, publishing_s=600))
    scheduler.handle(heard(1, progress(0, phase=phase), now=10))
    assert scheduler.handle(tick(10 + limit_s)) == []
    late = ended(1, f"made no progress in {phase} for {limit_s} s", cause=cause)
    assert scheduler.handle(tick(11 + limit_s)) == [late]


def test_rounds_keep_a_decoding_attempt_alive(make: Make) -> None:
    scheduler = begun(make(1.0, lease_s=1e9, decoding_s=120))
    for now in (0, 100, 200):
        scheduler.handle(heard(1, progress(0, num_rounds=now), now=now))
        assert scheduler.handle(tick(now + 99)) == []


def test_a_heartbeat_without_a_new_round_is_no_progress(make: Make) -> None:
    scheduler = begun(make(1.0, decoding_s=120))
    for now in range(0, 121, 20):
        scheduler.handle(heard(1, progress(0, num_rounds=7, fraction=now / 200), now=now))
        assert scheduler.handle(tick(now)) == []
    scheduler.handle(heard(1, progress(0, num_rounds=7), now=121))
    assert len(scheduler.handle(tick(121))) == 1


def test_an_attempt_that_was_never_heard_of_is_late_in_the_end(make: Make) -> None:
    scheduler = begun(make(1.0, publishing_s=600, lease_s=1e9))
    assert scheduler.handle(tick(601)) == [ended(1, "made no progress in assigned for 600 s")]


def test_a_stuck_worker_is_held_against_the_rows_that_decoded_only(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0, deaths_together=1))
    scheduler.handle(heard(1, progress(0), progress(1, phase="publishing")))
    scheduler.handle(lost(1, cause="stuck"))
    assert scheduler.state_of(0) == "suspect"
    assert scheduler.state_of(1) == "pending"


def test_heartbeats_about_shards_that_are_committed_are_ignored(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0))
    scheduler.handle(committed(1, 0))
    assert scheduler.handle(heard(1, progress(0))) == []


def test_heartbeats_of_workers_that_are_gone_are_ignored(make: Make) -> None:
    scheduler = begun(make(1.0))
    assert scheduler.handle(heard(8)) == []
