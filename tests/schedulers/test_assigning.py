"""Who gets which shard: order, capacity, what is kept back, and stragglers."""

from schedulers.instructions import Finished, Seal
from tests.schedulers.conftest import Make
from tests.schedulers.stories import (
    END,
    alone,
    assign,
    beaten,
    begun,
    committed,
    failed,
    heard,
    joined,
    lost,
    placed,
    progress,
    release,
    start,
    tick,
    w,
)


def test_the_dearest_shards_go_first_and_a_worker_gets_two(make: Make) -> None:
    scheduler = make(1.0, 5.0, 3.0)
    assert scheduler.handle(tick()) == start(1)
    assert scheduler.handle(joined(1)) == assign(1, 1, 2)


def test_equal_shards_go_in_order(make: Make) -> None:
    scheduler = make(1.0, 1.0, 1.0)
    scheduler.handle(tick())
    assert scheduler.handle(joined(1)) == assign(1, 0, 1)


def test_capacity_bounds_what_a_worker_holds(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0, 1.0, 1.0, capacity=3))
    assert [lease.shard for lease in scheduler.leases_of(w(1))] == [0, 1, 2]


def test_the_next_shard_follows_a_commit(make: Make) -> None:
    assert begun(make(3.0, 2.0, 1.0)).handle(committed(1, 0)) == assign(1, 2)


def test_a_shard_that_would_only_wait_is_kept_for_a_worker_that_is_expected(make: Make) -> None:
    scheduler = make(2.0, 1.0, num_workers=2)
    assert scheduler.handle(tick()) == start(1, 2)
    assert scheduler.handle(joined(1)) == assign(1, 0)
    assert scheduler.handle(joined(2)) == assign(2, 1)


def test_a_worker_that_gets_no_place_is_not_waited_for_for_long(make: Make) -> None:
    scheduler = make(2.0, 1.0, num_workers=2, place_patience_s=60)
    scheduler.handle(tick())
    scheduler.handle(joined(1, now=1))
    assert scheduler.handle(heard(1, now=60)) == []
    assert scheduler.handle(tick(60)) == []
    scheduler.handle(heard(1, now=61))
    assert scheduler.handle(tick(61)) == assign(1, 1)


def test_a_worker_that_starts_is_waited_for(make: Make) -> None:
    scheduler = make(2.0, 1.0, num_workers=2, place_patience_s=60, lease_s=1000)
    scheduler.handle(tick())
    scheduler.handle(placed(2))
    scheduler.handle(joined(1))
    assert scheduler.handle(tick(500)) == []
    assert scheduler.handle(joined(2, now=501)) == assign(2, 1)


def test_with_plenty_of_shards_a_second_one_is_given_at_once(make: Make) -> None:
    scheduler = make(4.0, 3.0, 2.0, 1.0, num_workers=2)
    scheduler.handle(tick())
    assert scheduler.handle(joined(1)) == assign(1, 0, 1)
    assert scheduler.handle(joined(2)) == assign(2, 2, 3)


def test_who_holds_least_is_served_first(make: Make) -> None:
    scheduler = begun(make(5.0, 4.0, 3.0, 2.0, 1.0, num_workers=2), num_workers=2)
    assert scheduler.handle(committed(2, 2)) == assign(2, 4)


def test_committed_shards_are_not_given_out(make: Make) -> None:
    scheduler = make(3.0, 2.0, 1.0, committed=[0, 2])
    scheduler.handle(tick())
    assert scheduler.handle(joined(1)) == assign(1, 1)


def test_a_worker_without_work_is_released_while_others_go_on(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0, num_workers=2), num_workers=2)
    assert scheduler.handle(committed(2, 1)) == [release(2)]
    assert not scheduler.is_over


def test_a_worker_is_not_released_while_a_shard_rests(make: Make) -> None:
    scheduler = begun(make(1.0, rest_s=5))
    assert scheduler.handle(failed(1, 0, infrastructure=True)) == []
    scheduler.handle(heard(1, now=5))
    assert scheduler.handle(tick(5)) == assign(1, 0)


# Stragglers


def test_a_straggling_last_shard_is_duplicated_and_the_first_commit_counts(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0, 1.0, num_workers=2, capacity=1), num_workers=2)
    scheduler.handle(heard(2, progress(1, fraction=0.1), now=10))
    assert scheduler.handle(committed(1, 0, now=10)) == assign(1, 2)
    # A shard takes 10 s; shard 1 has done a tenth in 20 s and needs 180 s more.
    assert scheduler.handle(committed(1, 2, now=20)) == assign(1, 1)
    scheduler.check()
    assert scheduler.handle(committed(1, 1, now=30)) == [release(1), *END]


def test_a_shard_that_ends_soon_is_not_duplicated(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0, num_workers=2), num_workers=2)
    scheduler.handle(heard(2, progress(1, fraction=0.5), now=10))
    assert scheduler.handle(committed(1, 0, now=10)) == [release(1)]


def test_a_duplicate_that_would_save_a_few_seconds_is_not_worth_it(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0, num_workers=2), num_workers=2)
    scheduler.handle(heard(2, progress(1, fraction=0.2), now=1))
    assert scheduler.handle(committed(1, 0, now=1)) == [release(1)]


def test_a_shard_that_is_being_published_is_not_duplicated(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0, num_workers=2), num_workers=2)
    scheduler.handle(heard(2, progress(1, phase="publishing", fraction=0.01), now=10))
    assert scheduler.handle(committed(1, 0, now=10)) == [release(1)]


def test_nothing_is_duplicated_before_it_is_known_how_long_a_shard_takes(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0, num_workers=2), num_workers=2)
    scheduler.handle(heard(2, progress(1, fraction=0.01), now=10))
    scheduler.handle(failed(1, 0, now=10))
    scheduler.handle(failed(1, 0, now=10))
    instructions = scheduler.handle(failed(1, 0, now=10))
    assert instructions[-1] == release(1)


def test_a_duplicate_that_fails_leaves_the_shard_to_the_other(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0, num_workers=2), num_workers=2)
    scheduler.handle(heard(2, progress(1, fraction=0.01), now=10))
    assert scheduler.handle(committed(1, 0, now=10)) == assign(1, 1)
    assert scheduler.handle(failed(1, 1, infrastructure=True, now=11)) == [release(1)]
    assert scheduler.state_of(1) == "leased"
    assert scheduler.handle(committed(2, 1, now=13)) == [release(2), *END]


def test_the_duplicate_of_a_lost_worker_goes_on(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0, num_workers=2), num_workers=2)
    scheduler.handle(heard(2, progress(1, fraction=0.01), now=10))
    assert scheduler.handle(committed(1, 0, now=10)) == assign(1, 1)
    assert scheduler.handle(lost(2, now=12)) == []
    assert scheduler.state_of(1) == "leased"
    assert scheduler.handle(failed(1, 1, now=13)) == assign(1, 1)


def test_the_slower_of_two_attempts_ends_as_lost(make: Make) -> None:
    scheduler = begun(make(9.0, 1.0, 1.0, num_workers=2, capacity=1), num_workers=2)
    scheduler.handle(heard(2, progress(1, fraction=0.01), now=10))
    scheduler.handle(committed(1, 0, now=10))
    assert scheduler.handle(committed(1, 2, now=12)) == assign(1, 1)
    scheduler.handle(committed(2, 1, now=13))
    assert scheduler.is_over
    assert scheduler.handle(beaten(1, 1, now=14)) == []


def test_rows_that_run_alone_are_never_duplicated(make: Make) -> None:
    scheduler = begun(make(1.0, 1.0, num_workers=2, deaths_together=1), num_workers=2)
    assert scheduler.handle(lost(2)) == [*start(3)]
    scheduler.handle(placed(3))
    assert scheduler.handle(joined(3)) == [alone(3, 1)]
    scheduler.handle(heard(3, progress(1, fraction=0.01), now=100))
    assert scheduler.handle(committed(1, 0, now=100)) == [release(1)]


def test_instructions_of_the_end_come_last(make: Make) -> None:
    assert begun(make(1.0)).handle(committed(1, 0)) == [release(1), Seal(), Finished()]
