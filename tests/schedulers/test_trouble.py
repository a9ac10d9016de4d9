"""Failures that workers report, and rests after storage faults."""

from schedulers.instructions import Finished, GiveUp
from tests.schedulers.conftest import Make
from tests.schedulers.stories import (
    END,
    assign,
    begun,
    committed,
    failed,
    heard,
    joined,
    lost,
    release,
    start,
    tick,
)


def test_a_failed_attempt_is_tried_again(make: Make) -> None:
    assert begun(make(1.0)).handle(failed(1, 0)) == assign(1, 0)


def test_a_shard_that_used_up_its_attempts_is_given_up_and_the_job_is_not_sealed(
    make: Make,
) -> None:
    scheduler = begun(make(2.0, 1.0, attempts=2))
    scheduler.handle(failed(1, 0))
    assert scheduler.handle(failed(1, 0)) == [GiveUp(shard=0, reason="E")]
    assert scheduler.state_of(0) == "failed"
    assert scheduler.handle(committed(1, 1)) == [release(1), Finished()]


def test_after_a_storage_fault_a_shard_rests_longer_each_time(make: Make) -> None:
    scheduler = begun(make(1.0, rest_s=1, max_rest_s=3, lease_s=1000))
    for rests_s in (1, 2, 3, 3):
        assert scheduler.handle(failed(1, 0, infrastructure=True, now=100)) == []
        assert scheduler.state_of(0) == "resting"
        assert scheduler.handle(tick(100 + rests_s - 0.5)) == []
        assert scheduler.handle(tick(100 + rests_s)) == assign(1, 0)


def test_a_resting_shard_that_is_committed_late_stays_committed(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0, rest_s=5))
    scheduler.handle(failed(1, 0, infrastructure=True))
    scheduler.handle(committed(9, 0))
    scheduler.handle(heard(1, now=9))
    assert scheduler.handle(tick(9)) == []
    assert scheduler.state_of(0) == "committed"
    assert scheduler.handle(committed(1, 1, now=9)) == [release(1), *END]


def test_losses_by_infrastructure_are_not_charged_to_attempts(make: Make) -> None:
    scheduler = begun(make(1.0, attempts=1))
    for number in (1, 2, 3):
        assert scheduler.handle(lost(number, cause="infrastructure")) == start(number + 1)
        assert scheduler.handle(joined(number + 1)) == assign(number + 1, 0)


def test_what_a_worker_committed_with_its_last_breath_is_not_charged(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0, deaths_together=1))
    assert scheduler.handle(lost(1, committed=(0, 1))) == END


def test_the_late_commit_of_a_lost_worker_counts(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0))
    scheduler.handle(lost(1))
    assert scheduler.handle(committed(1, 0)) == []
    assert scheduler.handle(joined(2)) == assign(2, 1)


def test_failing_at_a_shard_that_was_committed_late_is_charged_to_nobody(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0, attempts=1))
    scheduler.handle(lost(1))
    scheduler.handle(joined(2))
    scheduler.handle(committed(1, 0))
    assert scheduler.handle(failed(2, 0)) == []
    assert scheduler.state_of(0) == "committed"


def test_the_late_failure_of_a_lost_worker_is_not_charged_twice(make: Make) -> None:
    scheduler = begun(make(1.0, attempts=1))
    scheduler.handle(lost(1))
    assert scheduler.handle(failed(1, 0)) == []
    assert scheduler.handle(joined(2)) == assign(2, 0)


def test_a_given_up_shard_that_is_committed_late_is_committed(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0, attempts=1))
    scheduler.handle(failed(1, 0))
    scheduler.handle(committed(7, 0))
    assert scheduler.handle(committed(1, 1)) == [release(1), *END]


def test_losing_a_worker_whose_shard_another_committed_is_charged_to_nobody(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0, attempts=1))
    scheduler.handle(committed(7, 0))
    scheduler.handle(lost(1, committed=(0,)))
    assert scheduler.state_of(0) == "committed"
    assert scheduler.state_of(1) == "pending"
