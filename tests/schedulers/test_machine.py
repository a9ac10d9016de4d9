"""The run as a whole: how it ends, how it is stopped, and mistakes of the driver."""

import pytest

from schedulers.errors import SchedulerError
from schedulers.events import CancelRequested, Event, WorkerEnded
from schedulers.instructions import Cancelled, Drained
from schedulers.machine import Scheduler
from tests.schedulers.conftest import Make
from tests.schedulers.stories import (
    END,
    beaten,
    begun,
    committed,
    drain,
    failed,
    heard,
    joined,
    lost,
    placed,
    release,
    start,
    tick,
    w,
)


def test_a_job_that_is_complete_is_sealed_at_the_first_tick(make: Make) -> None:
    scheduler = make(1.0, committed=[0])
    assert scheduler.handle(tick()) == END
    assert scheduler.is_over


def test_a_job_without_shards_is_sealed(make: Make) -> None:
    assert make().handle(tick()) == END


def test_after_the_end_events_change_nothing_and_late_workers_are_released(make: Make) -> None:
    scheduler = make(1.0, committed=[0])
    scheduler.handle(tick())
    later: list[Event] = [tick(), drain(), lost(1), committed(1, 0), failed(1, 0)]
    assert [scheduler.handle(event) for event in later] == [[]] * len(later)
    assert scheduler.handle(joined(1)) == [release(1)]


def test_the_seal_does_not_wait_for_a_worker_that_runs_a_committed_shard(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0))
    scheduler.handle(committed(7, 0))
    assert scheduler.handle(committed(1, 1)) == END


# Ended, and not looked after yet


def test_a_worker_that_ended_gets_no_more_while_storage_is_asked(make: Make) -> None:
    scheduler = begun(make(3.0, 2.0, 1.0))
    assert scheduler.handle(WorkerEnded(worker=w(1), now=1)) == []
    assert scheduler.handle(committed(1, 0, now=1)) == []
    assert scheduler.num_leased == 1
    assert scheduler.handle(lost(1, now=2)) == start(2)


def test_a_worker_that_ended_and_joins_is_not_taken(make: Make) -> None:
    scheduler = make(1.0)
    scheduler.handle(tick())
    scheduler.handle(placed(1))
    scheduler.handle(WorkerEnded(worker=w(1), now=1))
    assert scheduler.handle(joined(1)) == []
    assert scheduler.num_workers == 0


def test_the_end_of_a_worker_that_is_unknown_is_no_trouble(make: Make) -> None:
    assert begun(make(1.0)).handle(WorkerEnded(worker="nobody", now=1)) == []


def test_a_worker_is_placed_once(make: Make) -> None:
    scheduler = begun(make(1.0))
    assert scheduler.handle(placed(1, node="elsewhere")) == []
    assert scheduler.num_workers == 1
    assert scheduler.handle(placed(9)) == []


# Stops


def test_a_drain_gives_out_nothing_and_waits_for_what_runs(make: Make) -> None:
    scheduler = begun(make(4.0, 3.0, 2.0, 1.0))
    assert scheduler.handle(drain()) == []
    assert scheduler.is_draining
    assert scheduler.handle(committed(1, 0)) == []
    assert scheduler.handle(committed(1, 1)) == [release(1), Drained()]
    assert scheduler.num_pending == 2


def test_a_drain_with_nothing_running_ends_at_once(make: Make) -> None:
    assert make(1.0).handle(drain()) == [Drained()]


def test_a_drain_ends_at_its_deadline_whatever_runs(make: Make) -> None:
    scheduler = begun(make(1.0, drain_s=10, lease_s=1e9))
    scheduler.handle(drain(now=100))
    assert scheduler.handle(drain(now=105)) == []  # asking again gives no more time
    assert scheduler.handle(tick(109)) == []
    assert scheduler.handle(tick(110)) == [Drained()]


def test_a_worker_lost_in_a_drain_is_not_replaced(make: Make) -> None:
    scheduler = begun(make(1.0))
    scheduler.handle(drain())
    assert scheduler.handle(lost(1, cause="infrastructure")) == [Drained()]


def test_a_shard_that_fails_in_a_drain_is_not_tried_again(make: Make) -> None:
    scheduler = begun(make(1.0))
    scheduler.handle(drain())
    assert scheduler.handle(failed(1, 0)) == [release(1), Drained()]


def test_a_worker_that_joins_a_drain_is_released(make: Make) -> None:
    scheduler = make(2.0, 1.0, num_workers=2)
    scheduler.handle(tick())
    scheduler.handle(joined(1))
    scheduler.handle(drain())
    assert scheduler.handle(joined(2)) == [release(2)]


def test_a_drain_that_completes_the_job_seals_it(make: Make) -> None:
    scheduler = begun(make(1.0))
    scheduler.handle(drain())
    assert scheduler.handle(committed(1, 0)) == [release(1), *END]


def test_a_cancelled_job_ends_at_once(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0))
    assert scheduler.handle(CancelRequested(now=1)) == [Cancelled()]
    assert scheduler.is_over
    assert scheduler.handle(tick(2)) == []


# Counts and mistakes


def test_counts_follow_the_states(make: Make) -> None:
    scheduler = begun(make(5.0, 4.0, 3.0, 2.0, 1.0, attempts=1, committed=[4]))
    scheduler.handle(failed(1, 0))
    counts = (
        scheduler.num_pending,
        scheduler.num_leased,
        scheduler.num_committed,
        scheduler.num_failed,
        scheduler.num_workers,
    )
    assert counts == (1, 2, 1, 1, 1)
    assert scheduler.leases_of("nobody") == ()


@pytest.mark.parametrize("event", [committed(1, 7), beaten(1, 7), failed(1, 7)])
def test_a_shard_that_does_not_exist_is_a_mistake(make: Make, event: Event) -> None:
    with pytest.raises(SchedulerError, match=r"there is no such shard; .* nothing"):
        make(1.0).handle(event)


def test_what_is_not_an_event_is_a_mistake(make: Make) -> None:
    with pytest.raises(AssertionError, match="is not an event"):
        make(1.0).handle("tick")  # type: ignore[arg-type]


def test_check_finds_a_state_that_was_changed_behind_its_back() -> None:
    scheduler = begun(Scheduler([(0, 1.0)]))
    scheduler.check()
    next(iter(scheduler._crew)).leases.clear()
    with pytest.raises(AssertionError):
        scheduler.check()


def test_check_finds_idle_hands_while_work_waits() -> None:
    scheduler = begun(Scheduler([(0, 1.0)]))
    scheduler.handle(heard(1))
    lease = scheduler._crew.drop(next(iter(scheduler._crew)), 0)
    assert lease is not None
    shard = scheduler._table[0]
    shard.num_holders = 0
    scheduler._table.move(shard, state="pending")
    with pytest.raises(AssertionError):
        scheduler.check()
