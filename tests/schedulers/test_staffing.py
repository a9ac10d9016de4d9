"""How many workers there are: replaced, refused, parked, and when to give up."""

import pytest

from schedulers.events import Event
from schedulers.instructions import Finished, GiveUp, Park, Starved
from tests.schedulers.conftest import Make
from tests.schedulers.stories import (
    assign,
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


def test_no_more_workers_are_asked_for_than_shards_are_missing(make: Make) -> None:
    assert make(1.0, 1.0, 1.0, committed=[0], num_workers=5).handle(tick()) == start(1, 2)


def test_a_dead_worker_is_replaced_and_its_shards_go_to_the_others(make: Make) -> None:
    scheduler = begun(make(5.0, 4.0, 3.0, 2.0, 1.0, num_workers=2), num_workers=2)
    assert scheduler.handle(lost(1)) == start(3)
    assert scheduler.num_pending == 3
    assert scheduler.handle(committed(2, 2)) == assign(2, 0)
    assert scheduler.handle(joined(3)) == assign(3, 1, 4)


def test_no_worker_is_started_for_shards_that_expected_ones_can_take(make: Make) -> None:
    scheduler = make(1.0, 0.5, committed=[1], num_workers=1)
    scheduler.handle(tick())
    assert scheduler.handle(tick(1)) == []


def test_a_worker_that_never_came_up_is_replaced(make: Make) -> None:
    scheduler = make(1.0)
    scheduler.handle(tick())
    assert scheduler.handle(lost(1)) == start(2)
    assert scheduler.handle(joined(2)) == assign(2, 0)


def test_when_workers_keep_dying_before_they_took_a_shard_the_job_is_given_up(make: Make) -> None:
    scheduler = make(1.0, 2.0, attempts=3)
    scheduler.handle(tick())
    assert scheduler.handle(lost(1)) == start(2)
    assert scheduler.handle(lost(2, cause="infrastructure")) == start(3)
    reason = "3 workers in a row were lost before they took a shard"
    assert scheduler.handle(lost(3)) == [
        GiveUp(shard=1, reason=reason),
        GiveUp(shard=0, reason=reason),
        Finished(),
    ]


@pytest.mark.parametrize("sign", [committed(1, 0), beaten(1, 0), failed(1, 0)])
def test_a_sign_of_life_forgives_workers_that_died_with_empty_hands(
    make: Make, sign: Event
) -> None:
    scheduler = make(9.0, *[1.0] * 8, attempts=2, num_workers=2, capacity=1)
    scheduler.handle(tick())
    scheduler.handle(joined(1))
    for number in (2, 3, 4):
        assert scheduler.handle(lost(number)) == start(number + 1)
    scheduler.handle(sign)
    assert scheduler.handle(lost(5)) == start(6)


def test_a_loss_that_is_reported_twice_counts_once(make: Make) -> None:
    scheduler = begun(make(1.0))
    scheduler.handle(lost(1))
    assert scheduler.handle(lost(1)) == []
    assert scheduler.num_pending == 1


def test_a_released_worker_is_not_replaced(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0, num_workers=2), num_workers=2)
    assert scheduler.handle(committed(2, 1)) == [release(2)]
    assert scheduler.handle(lost(1)) == start(3)
    assert scheduler.handle(lost(2)) == []


def test_a_worker_that_comes_too_late_is_released(make: Make) -> None:
    scheduler = make(1.0, 1.0, num_workers=2)
    scheduler.handle(tick())
    scheduler.handle(joined(1))
    scheduler.handle(committed(1, 0))
    scheduler.handle(committed(9, 1))
    assert scheduler.handle(joined(2)) == [release(2)]


def test_a_lost_worker_that_joins_again_is_released(make: Make) -> None:
    scheduler = begun(make(1.0))
    scheduler.handle(lost(1))
    assert scheduler.handle(joined(1)) == [release(1)]


# Sick workers


def sick(make: Make, *, num_workers: int = 2) -> list[object]:
    """What follows when three attempts at two shards fail in a row on worker 1."""
    scheduler = begun(
        make(*[1.0] * 8, num_workers=num_workers, sick_after=3), num_workers=num_workers
    )
    scheduler.handle(failed(1, 0))
    scheduler.handle(failed(1, 1))
    return list(scheduler.handle(failed(1, 0)))


def test_a_sick_worker_is_parked_and_another_one_asked_for(make: Make) -> None:
    parked = Park(worker=w(1), reason="3 attempts in a row failed on it")
    assert sick(make) == [parked, *start(3)]


def test_the_only_worker_is_never_parked(make: Make) -> None:
    assert sick(make, num_workers=1) == assign(1, 0)


def test_one_shard_that_fails_again_and_again_makes_no_worker_sick(make: Make) -> None:
    scheduler = begun(make(*[1.0] * 8, num_workers=2, attempts=9, sick_after=3), num_workers=2)
    for _ in range(5):
        assert scheduler.handle(failed(1, 0)) == assign(1, 0)


def test_a_commit_makes_a_worker_healthy(make: Make) -> None:
    scheduler = begun(make(*[1.0] * 8, num_workers=2, attempts=9, sick_after=2), num_workers=2)
    scheduler.handle(failed(1, 0))
    assert scheduler.handle(committed(1, 0)) == assign(1, 4)
    assert scheduler.handle(failed(1, 1)) == assign(1, 1)


def test_a_sick_worker_is_not_parked_in_a_drain_but_gets_nothing_anyway(make: Make) -> None:
    scheduler = begun(make(*[1.0] * 8, num_workers=2, sick_after=2), num_workers=2)
    scheduler.handle(drain())
    scheduler.handle(failed(1, 0))
    assert scheduler.handle(failed(1, 1))[-1] == Park(
        worker=w(1), reason="2 attempts in a row failed on it"
    )


def test_a_parked_worker_makes_room_when_nobody_else_is_left(make: Make) -> None:
    scheduler = begun(make(*[1.0] * 4, num_workers=2, sick_after=2), num_workers=2)
    scheduler.handle(failed(1, 0))
    scheduler.handle(failed(1, 1))
    scheduler.handle(committed(1, 0))
    assert scheduler.leases_of(w(1)) == ()
    assert scheduler.handle(lost(2)) == [release(1), *start(4)]


def test_a_parked_worker_that_still_works_makes_room_at_its_end(make: Make) -> None:
    scheduler = begun(make(*[1.0] * 4, num_workers=2, sick_after=2), num_workers=2)
    scheduler.handle(failed(1, 0))
    scheduler.handle(failed(1, 1))
    assert [lease.shard for lease in scheduler.leases_of(w(1))] == [0]
    assert release(1) not in scheduler.handle(lost(2))
    scheduler.handle(committed(1, 0))
    assert release(1) in scheduler.handle(tick(1))


# No place


def test_a_run_without_a_place_for_any_worker_is_starved(make: Make) -> None:
    scheduler = make(1.0, start_timeout_s=60)
    scheduler.handle(tick(100))
    assert scheduler.handle(tick(159)) == []
    assert scheduler.handle(tick(160)) == [Starved()]
    assert scheduler.is_over


def test_a_worker_that_starts_has_a_place(make: Make) -> None:
    scheduler = make(1.0, start_timeout_s=60)
    scheduler.handle(tick())
    scheduler.handle(placed(1))
    assert scheduler.handle(tick(1000)) == []


def test_a_run_that_loses_all_places_is_starved_later(make: Make) -> None:
    scheduler = begun(make(1.0, start_timeout_s=60))
    scheduler.handle(lost(1, cause="infrastructure", now=50))
    assert scheduler.handle(tick(109)) == []
    assert scheduler.handle(tick(110)) == [Starved()]


def test_a_run_with_fewer_workers_than_asked_for_goes_on(make: Make) -> None:
    scheduler = make(*[1.0] * 4, num_workers=3, start_timeout_s=60, lease_s=1000)
    scheduler.handle(tick())
    scheduler.handle(joined(1))
    scheduler.handle(heard(1, now=500))
    assert Starved() not in scheduler.handle(tick(500))
    scheduler.handle(committed(1, 0, now=500))
    assert not scheduler.is_over
