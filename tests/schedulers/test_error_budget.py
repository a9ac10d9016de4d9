"""A job whose samples are mostly errors stops before it burns the cluster."""

from schedulers.events import SamplesCounted
from schedulers.instructions import Drained, StopForErrors
from tests.schedulers.conftest import Make
from tests.schedulers.stories import END, assign, beaten, begun, committed, release


def test_too_many_errors_drain_the_job(make: Make) -> None:
    scheduler = begun(make(3.0, 2.0, 1.0, max_error_fraction=0.05, judged_from_samples=200))
    stop = StopForErrors(errors=11, samples=200)
    assert scheduler.handle(committed(1, 0, ok=189, errors=11)) == [stop]
    assert scheduler.is_draining
    assert scheduler.handle(committed(1, 1, errors=100)) == [release(1), Drained()]


def test_exactly_the_allowed_share_is_no_trouble(make: Make) -> None:
    scheduler = begun(make(3.0, 2.0, 1.0, max_error_fraction=0.05, judged_from_samples=200))
    assert scheduler.handle(committed(1, 0, ok=190, errors=10)) == assign(1, 2)


def test_few_samples_are_not_judged(make: Make) -> None:
    scheduler = begun(make(1.0))
    assert scheduler.handle(committed(1, 0, errors=199)) == [release(1), *END]


def test_samples_of_earlier_runs_are_judged_too(make: Make) -> None:
    scheduler = begun(make(1.0))
    event = SamplesCounted(ok=0, errors=200, now=0)
    assert scheduler.handle(event) == [StopForErrors(errors=200, samples=200)]


def test_a_shard_is_counted_once(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0, judged_from_samples=100))
    scheduler.handle(beaten(1, 0))
    scheduler.handle(committed(9, 0, errors=100))
    assert not scheduler.is_draining
