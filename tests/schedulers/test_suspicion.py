"""Which row killed its workers: what rows and shards are charged with, and what is forgiven."""

import pytest

from schedulers.instructions import Convict, Finished, GiveUp
from schedulers.suspicion import Death
from tests.schedulers.conftest import Make
from tests.schedulers.stories import (
    END,
    alone,
    assign,
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
)

REASON = "worker worker-0002 was lost (death)"


def test_after_two_deaths_rows_run_one_at_a_time(make: Make) -> None:
    scheduler = begun(make(1.0))
    assert scheduler.handle(lost(1)) == start(2)
    assert scheduler.handle(joined(2)) == assign(2, 0)
    assert scheduler.handle(lost(2)) == start(3)
    assert scheduler.state_of(0) == "suspect"
    assert scheduler.handle(joined(3)) == [alone(3, 0)]


def test_a_row_that_dies_twice_alone_is_convicted_and_not_decoded_again(make: Make) -> None:
    scheduler = begun(make(1.0, deaths_together=0, num_workers=1, deaths=[Death(0)]))
    assert scheduler.handle(lost(1, announced=4)) == start(2)
    assert scheduler.handle(joined(2)) == [alone(2, 0)]
    assert scheduler.handle(lost(2, announced=4)) == [Convict(shard=0, row=4), *start(3)]
    assert scheduler.handle(joined(3)) == [alone(3, 0, 4)]
    assert scheduler.handle(committed(3, 0)) == [release(3), *END]


def test_two_poison_rows_are_convicted_one_after_the_other(make: Make) -> None:
    scheduler = begun(make(1.0, deaths=[Death(0), Death(0)]))
    for number, row in ((1, 2), (2, 2), (3, 5), (4, 5)):
        scheduler.handle(lost(number, announced=row))
        scheduler.handle(joined(number + 1))
    assert scheduler.handle(lost(5, cause="infrastructure")) == start(6)
    assert scheduler.handle(joined(6)) == [alone(6, 0, 2, 5)]


def test_a_row_that_got_through_since_is_cleared_and_its_death_was_infrastructure(
    make: Make,
) -> None:
    scheduler = begun(make(1.0, deaths=[Death(0), Death(0)], infrastructure_attempts=2))
    scheduler.handle(lost(1, announced=2))
    scheduler.handle(joined(2))
    scheduler.handle(lost(2, announced=7))  # row 2 got through this time
    scheduler.handle(joined(3))
    scheduler.handle(lost(3, announced=2))
    assert scheduler.handle(joined(4)) == [alone(4, 0)]
    reason = "worker worker-0004 was lost (death)"
    assert scheduler.handle(lost(4, announced=3)) == [GiveUp(shard=0, reason=reason), Finished()]


def test_a_death_with_no_row_announced_is_nobodys_fault(make: Make) -> None:
    scheduler = begun(make(1.0, deaths=[Death(0), Death(0)], infrastructure_attempts=2))
    assert scheduler.handle(lost(1)) == start(2)
    scheduler.handle(joined(2))
    assert scheduler.handle(lost(2)) == [GiveUp(shard=0, reason=REASON), Finished()]


def test_deaths_alone_by_infrastructure_are_not_held_against_the_row(make: Make) -> None:
    scheduler = begun(make(1.0, deaths=[Death(0), Death(0)], deaths_alone=1))
    assert scheduler.handle(lost(1, cause="infrastructure", announced=3)) == start(2)
    assert scheduler.handle(joined(2)) == [alone(2, 0)]


def test_a_hang_is_held_against_the_row_like_a_death(make: Make) -> None:
    scheduler = begun(make(1.0, deaths=[Death(0), Death(0)], deaths_alone=1, decoding_s=10))
    scheduler.handle(heard(1, progress(0)))
    instructions = scheduler.handle(lost(1, cause="stuck", announced=3))
    assert instructions == [Convict(shard=0, row=3), *start(2)]


def test_all_shards_of_a_dead_worker_are_suspected(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0, deaths_together=1))
    scheduler.handle(lost(1))
    assert [scheduler.state_of(shard) for shard in (0, 1)] == ["suspect", "suspect"]


def test_a_suspect_shard_has_its_worker_for_itself(make: Make) -> None:
    scheduler = begun(make(2.0, 1.0, 1.0, deaths=[Death(0), Death(0)]))
    assert len(scheduler.leases_of("worker-0001")) == 1
    assert scheduler.handle(tick(1)) == []
    assert scheduler.handle(committed(1, 0)) == assign(1, 1, 2)


def test_a_suspect_shard_waits_for_empty_hands(make: Make) -> None:
    scheduler = begun(make(3.0, 2.0, 1.0, deaths_together=1, num_workers=2), num_workers=2)
    scheduler.handle(lost(2))  # held shard 2
    assert scheduler.state_of(2) == "suspect"
    assert scheduler.handle(committed(1, 0)) == []
    assert scheduler.handle(committed(1, 1)) == [alone(1, 2)]


def test_deaths_of_earlier_runs_are_recalled_in_their_order(make: Make) -> None:
    deaths = [Death(1), Death(1), Death(1, 3), Death(1, 3), Death(0)]
    scheduler = begun(make(2.0, 1.0, deaths=deaths))
    assert scheduler.state_of(0) == "pending"
    assert scheduler.handle(committed(1, 1)) == assign(1, 0)
    assert [step.instructions for step in scheduler.history][2] == (alone(1, 1, 3),)


def test_deaths_of_a_shard_that_is_committed_are_no_trouble(make: Make) -> None:
    scheduler = make(1.0, committed=[0], deaths=[Death(0), Death(0), Death(0, 1)])
    assert scheduler.handle(tick()) == END


def test_a_duplicate_holder_that_dies_makes_the_shard_suspect_when_it_comes_back(
    make: Make,
) -> None:
    scheduler = begun(make(1.0, deaths_together=1))
    scheduler.handle(lost(1))
    scheduler.handle(placed(2))
    assert scheduler.handle(joined(2)) == [alone(2, 0)]


@pytest.mark.parametrize("infrastructure", [False, True])
def test_budgets_of_rows_and_infrastructure_are_apart(make: Make, infrastructure: bool) -> None:
    scheduler = begun(make(1.0, attempts=2, infrastructure_attempts=2, rest_s=0))
    scheduler.handle(failed(1, 0, infrastructure=not infrastructure))
    assert scheduler.state_of(0) == "leased"
    scheduler.handle(failed(1, 0, infrastructure=infrastructure))
    assert scheduler.state_of(0) == "leased"
    assert GiveUp(shard=0, reason="E") in scheduler.handle(
        failed(1, 0, infrastructure=infrastructure)
    )
