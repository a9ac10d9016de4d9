"""What the scheduler says to each event. Times are injected; most do not matter."""

from typing import Any

import pytest

from schedulers.errors import SchedulerError
from schedulers.events import (
    DrainRequested,
    ShardCommitted,
    ShardFailed,
    ShardLost,
    Tick,
    WorkerJoined,
    WorkerLost,
)
from schedulers.instructions import (
    Assign,
    Drained,
    Finished,
    GiveUp,
    Instruction,
    Release,
    ReplaceWorker,
    Seal,
)
from schedulers.machine import Scheduler
from tests.schedulers.conftest import Make

TICK = Tick(now=0)


def joined(worker: str) -> WorkerJoined:
    return WorkerJoined(worker=worker, now=0)


def died(worker: str) -> WorkerLost:
    return WorkerLost(worker=worker, reason="death", now=0)


def preempted(worker: str) -> WorkerLost:
    return WorkerLost(worker=worker, reason="infrastructure", now=0)


def committed(worker: str, shard: int) -> ShardCommitted:
    return ShardCommitted(worker=worker, shard=shard, attempt="a", now=0)


def lost(worker: str, shard: int) -> ShardLost:
    return ShardLost(worker=worker, shard=shard, attempt="b", now=0)


def failed(worker: str, shard: int, *, infrastructure: bool = False) -> ShardFailed:
    return ShardFailed(worker=worker, shard=shard, error="E", infrastructure=infrastructure, now=0)


def drain(now: float = 0) -> DrainRequested:
    return DrainRequested(now=now)


def assign(worker: str, *shards: int) -> list[Instruction]:
    return [Assign(worker=worker, shard=shard) for shard in shards]


# Order and capacity


def test_the_dearest_shards_go_first_and_a_worker_gets_two(make: Make) -> None:
    assert make(1.0, 5.0, 3.0).handle(joined("a")) == assign("a", 1, 2)


def test_equal_shards_go_in_order(make: Make) -> None:
    assert make(1.0, 1.0, 1.0).handle(joined("a")) == assign("a", 0, 1)


def test_capacity_bounds_what_a_worker_holds(make: Make) -> None:
    scheduler = make(1.0, 1.0, 1.0, 1.0, capacity=3)
    assert scheduler.handle(joined("a")) == assign("a", 0, 1, 2)
    assert scheduler.shards_of("a") == {0, 1, 2}


def test_the_next_shard_follows_a_commit(make: Make) -> None:
    scheduler = make(3.0, 2.0, 1.0)
    scheduler.handle(joined("a"))
    assert scheduler.handle(committed("a", 0)) == assign("a", 2)


def test_a_shard_that_would_only_wait_is_kept_for_a_worker_that_is_expected(make: Make) -> None:
    scheduler = make(2.0, 1.0, num_workers=2)
    assert scheduler.handle(joined("a")) == assign("a", 0)
    assert scheduler.handle(joined("b")) == assign("b", 1)


def test_with_plenty_of_shards_a_second_one_is_given_at_once(make: Make) -> None:
    scheduler = make(4.0, 3.0, 2.0, 1.0, num_workers=2)
    assert scheduler.handle(joined("a")) == assign("a", 0, 1)
    assert scheduler.handle(joined("b")) == assign("b", 2, 3)


def test_a_shard_is_not_kept_for_a_worker_that_never_came_up(make: Make) -> None:
    scheduler = make(2.0, 1.0, attempts=1, num_workers=2)
    scheduler.handle(died("b"))
    scheduler.handle(died("b-2"))
    assert scheduler.handle(joined("a")) == assign("a", 0, 1)


def test_who_holds_least_is_served_first(make: Make) -> None:
    scheduler = make(5.0, 4.0, 3.0, 2.0, 1.0, num_workers=2)
    scheduler.handle(joined("a"))
    scheduler.handle(joined("b"))
    assert scheduler.handle(committed("b", 2)) == assign("b", 4)


def test_committed_shards_are_not_given_out(make: Make) -> None:
    assert make(3.0, 2.0, 1.0, committed=[0, 2]).handle(joined("a")) == assign("a", 1)


# The end


def test_a_job_that_is_complete_is_sealed_at_the_first_tick(make: Make) -> None:
    scheduler = make(1.0, committed=[0])
    assert scheduler.handle(TICK) == [Seal(), Finished()]
    assert scheduler.is_over


def test_a_job_without_shards_is_sealed(make: Make) -> None:
    assert make().handle(TICK) == [Seal(), Finished()]


def test_the_last_commit_releases_seals_and_finishes(make: Make) -> None:
    scheduler = make(1.0)
    scheduler.handle(joined("a"))
    assert scheduler.handle(committed("a", 0)) == [Release(worker="a"), Seal(), Finished()]


def test_a_worker_without_work_is_released_while_others_go_on(make: Make) -> None:
    scheduler = make(2.0, 1.0, num_workers=2)
    scheduler.handle(joined("a"))
    scheduler.handle(joined("b"))
    assert scheduler.handle(committed("b", 1)) == [Release(worker="b")]
    assert not scheduler.is_over


def test_a_worker_that_comes_too_late_is_released(make: Make) -> None:
    scheduler = make(1.0, num_workers=2)
    scheduler.handle(joined("a"))
    assert scheduler.handle(joined("b")) == [Release(worker="b")]
    scheduler.handle(committed("a", 0))
    assert scheduler.handle(joined("c")) == [Release(worker="c")]


def test_after_the_end_events_change_nothing(make: Make) -> None:
    scheduler = make(1.0, committed=[0])
    scheduler.handle(TICK)
    later: list[Any] = [TICK, drain(), died("a"), committed("a", 0), failed("a", 0)]
    assert [scheduler.handle(event) for event in later] == [[]] * len(later)


def test_ticks_before_the_end_say_nothing_and_leave_no_history(make: Make) -> None:
    scheduler = make(1.0)
    scheduler.handle(joined("a"))
    assert scheduler.handle(TICK) == []
    assert [step.event for step in scheduler.history] == [joined("a")]


# Failures


def test_a_failed_attempt_is_tried_again(make: Make) -> None:
    scheduler = make(1.0)
    scheduler.handle(joined("a"))
    assert scheduler.handle(failed("a", 0)) == assign("a", 0)


def test_a_shard_that_used_up_its_attempts_is_given_up_and_the_job_is_not_sealed(
    make: Make,
) -> None:
    scheduler = make(2.0, 1.0)
    scheduler.handle(joined("a"))
    scheduler.handle(failed("a", 0))
    assert scheduler.handle(failed("a", 0)) == [GiveUp(shard=0, reason="E")]
    assert scheduler.state_of(0) == "failed"
    assert scheduler.handle(committed("a", 1)) == [Release(worker="a"), Finished()]


def test_infrastructure_has_a_wider_budget_of_its_own(make: Make) -> None:
    scheduler = make(1.0, attempts=1, infrastructure_attempts=3)
    scheduler.handle(joined("a"))
    again = failed("a", 0, infrastructure=True)
    assert scheduler.handle(again) == scheduler.handle(again) == assign("a", 0)
    assert scheduler.handle(again) == [
        GiveUp(shard=0, reason="E"),
        Release(worker="a"),
        Finished(),
    ]


def test_a_dead_worker_is_replaced_and_its_shards_go_to_the_others(make: Make) -> None:
    scheduler = make(5.0, 4.0, 3.0, 2.0, 1.0, num_workers=2)
    scheduler.handle(joined("a"))
    scheduler.handle(joined("b"))
    assert scheduler.handle(died("a")) == [ReplaceWorker(worker="a")]
    assert scheduler.num_pending == 3
    assert scheduler.handle(committed("b", 2)) == assign("b", 0)
    assert scheduler.handle(joined("c")) == assign("c", 1, 4)


def test_deaths_are_charged_to_what_the_worker_held(make: Make) -> None:
    scheduler = make(2.0, 1.0)
    scheduler.handle(joined("a"))
    scheduler.handle(died("a"))
    scheduler.handle(joined("b"))
    reason = "worker b was lost (death)"
    assert scheduler.handle(died("b")) == [
        GiveUp(shard=0, reason=reason),
        GiveUp(shard=1, reason=reason),
        Finished(),
    ]


def test_what_a_worker_committed_with_its_last_breath_is_not_charged(make: Make) -> None:
    scheduler = make(2.0, 1.0, attempts=1)
    scheduler.handle(joined("a"))
    event = WorkerLost(worker="a", reason="death", committed=frozenset({0, 1}), now=0)
    assert scheduler.handle(event) == [Seal(), Finished()]


def test_losses_by_infrastructure_are_not_charged_to_attempts(make: Make) -> None:
    scheduler = make(1.0, attempts=1)
    for worker in ("a", "b", "c"):
        assert scheduler.handle(joined(worker)) == assign(worker, 0)
        assert scheduler.handle(preempted(worker)) == [ReplaceWorker(worker=worker)]


def test_no_worker_is_started_for_shards_that_expected_ones_can_take(make: Make) -> None:
    scheduler = make(1.0, num_workers=2)
    scheduler.handle(joined("a"))
    assert scheduler.handle(died("a")) == []
    assert scheduler.handle(joined("b")) == assign("b", 0)


def test_a_worker_that_never_came_up_is_replaced(make: Make) -> None:
    scheduler = make(1.0)
    assert scheduler.handle(died("a")) == [ReplaceWorker(worker="a")]
    assert scheduler.handle(joined("b")) == assign("b", 0)


def test_when_workers_keep_dying_with_empty_hands_the_job_is_given_up(make: Make) -> None:
    scheduler = make(1.0, 2.0, attempts=3)
    assert scheduler.handle(died("a")) == [ReplaceWorker(worker="a")]
    assert scheduler.handle(preempted("b")) == [ReplaceWorker(worker="b")]
    reason = "3 workers in a row were lost before they took a shard"
    assert scheduler.handle(died("c")) == [
        GiveUp(shard=1, reason=reason),
        GiveUp(shard=0, reason=reason),
        Finished(),
    ]


@pytest.mark.parametrize("sign", [committed("a", 0), lost("a", 0), failed("a", 0)])
def test_a_sign_of_life_forgives_workers_that_died_with_empty_hands(
    make: Make, sign: ShardCommitted | ShardLost | ShardFailed
) -> None:
    scheduler = make(9.0, *[1.0] * 8, attempts=2, num_workers=2, capacity=1)
    scheduler.handle(joined("a"))
    for worker in ("b", "c", "d"):
        assert scheduler.handle(died(worker)) == [ReplaceWorker(worker=worker)]
    scheduler.handle(sign)
    assert scheduler.handle(died("e")) == [ReplaceWorker(worker="e")]


def test_a_loss_that_is_reported_twice_counts_once(make: Make) -> None:
    scheduler = make(1.0)
    scheduler.handle(joined("a"))
    scheduler.handle(died("a"))
    assert scheduler.handle(died("a")) == []
    assert scheduler.num_pending == 1


def test_a_released_worker_is_not_replaced(make: Make) -> None:
    scheduler = make(2.0, 1.0, num_workers=2)
    scheduler.handle(joined("a"))
    scheduler.handle(joined("b"))
    assert scheduler.handle(committed("b", 1)) == [Release(worker="b")]
    assert scheduler.handle(died("a")) == [ReplaceWorker(worker="a")]
    assert scheduler.handle(died("b")) == []


# Reports of workers that were taken for dead


def test_the_late_commit_of_a_lost_worker_counts(make: Make) -> None:
    scheduler = make(2.0, 1.0)
    scheduler.handle(joined("a"))
    scheduler.handle(died("a"))
    assert scheduler.handle(committed("a", 0)) == []
    assert scheduler.handle(joined("b")) == assign("b", 1)


def test_a_second_attempt_at_a_shard_that_was_committed_late_ends_as_lost(make: Make) -> None:
    scheduler = make(2.0, 1.0)
    scheduler.handle(joined("a"))
    scheduler.handle(died("a"))
    scheduler.handle(joined("b"))
    scheduler.handle(committed("a", 0))
    assert scheduler.shards_of("b") == {0, 1}
    assert scheduler.handle(lost("b", 0)) == []
    assert scheduler.shards_of("b") == {1}
    assert scheduler.handle(committed("b", 1)) == [Release(worker="b"), Seal(), Finished()]


def test_failing_at_a_shard_that_was_committed_late_is_charged_to_nobody(make: Make) -> None:
    scheduler = make(2.0, 1.0, attempts=2)
    scheduler.handle(joined("a"))
    scheduler.handle(died("a"))
    scheduler.handle(joined("b"))
    scheduler.handle(committed("a", 0))
    assert scheduler.handle(failed("b", 0)) == []
    assert scheduler.state_of(0) == "committed"


def test_the_late_failure_of_a_lost_worker_is_not_charged_twice(make: Make) -> None:
    scheduler = make(1.0)
    scheduler.handle(joined("a"))
    scheduler.handle(died("a"))
    assert scheduler.handle(failed("a", 0)) == []
    assert scheduler.handle(joined("b")) == assign("b", 0)


def test_a_given_up_shard_that_is_committed_late_is_committed(make: Make) -> None:
    scheduler = make(2.0, 1.0, attempts=1)
    scheduler.handle(joined("a"))
    scheduler.handle(failed("a", 0))
    scheduler.handle(committed("b", 0))
    assert scheduler.handle(committed("a", 1)) == [Release(worker="a"), Seal(), Finished()]


def test_a_lost_worker_that_joins_again_is_released(make: Make) -> None:
    scheduler = make(1.0)
    scheduler.handle(joined("a"))
    scheduler.handle(died("a"))
    assert scheduler.handle(joined("a")) == [Release(worker="a")]


# Drain


def test_a_drain_gives_out_nothing_and_waits_for_what_runs(make: Make) -> None:
    scheduler = make(4.0, 3.0, 2.0, 1.0)
    scheduler.handle(joined("a"))
    assert scheduler.handle(drain()) == []
    assert scheduler.is_draining
    assert scheduler.handle(committed("a", 0)) == []
    assert scheduler.handle(committed("a", 1)) == [Release(worker="a"), Drained()]
    assert scheduler.num_pending == 2


def test_a_drain_with_nothing_running_ends_at_once(make: Make) -> None:
    assert make(1.0).handle(drain()) == [Drained()]


def test_a_drain_ends_at_its_deadline_whatever_runs(make: Make) -> None:
    scheduler = make(1.0, drain_s=10)
    scheduler.handle(joined("a"))
    scheduler.handle(drain(now=100))
    assert scheduler.handle(drain(now=105)) == []  # asking again gives no more time
    assert scheduler.handle(Tick(now=109)) == []
    assert scheduler.handle(Tick(now=110)) == [Drained()]


def test_a_worker_lost_in_a_drain_is_not_replaced(make: Make) -> None:
    scheduler = make(1.0)
    scheduler.handle(joined("a"))
    scheduler.handle(drain())
    assert scheduler.handle(preempted("a")) == [Drained()]


def test_a_shard_that_fails_in_a_drain_is_not_tried_again(make: Make) -> None:
    scheduler = make(1.0)
    scheduler.handle(joined("a"))
    scheduler.handle(drain())
    assert scheduler.handle(failed("a", 0)) == [Release(worker="a"), Drained()]


def test_a_worker_that_joins_a_drain_is_released(make: Make) -> None:
    scheduler = make(2.0, 1.0, num_workers=2)
    scheduler.handle(joined("a"))
    scheduler.handle(drain())
    assert scheduler.handle(joined("b")) == [Release(worker="b")]


def test_a_drain_that_completes_the_job_seals_it(make: Make) -> None:
    scheduler = make(1.0)
    scheduler.handle(joined("a"))
    scheduler.handle(drain())
    assert scheduler.handle(committed("a", 0)) == [Release(worker="a"), Seal(), Finished()]


# Counts and mistakes


def test_counts_follow_the_states(make: Make) -> None:
    scheduler = make(5.0, 4.0, 3.0, 2.0, 1.0, attempts=1, committed=[4])
    scheduler.handle(joined("a"))
    scheduler.handle(failed("a", 0))
    counts = (
        scheduler.num_pending,
        scheduler.num_leased,
        scheduler.num_committed,
        scheduler.num_failed,
        scheduler.num_workers,
    )
    assert counts == (1, 2, 1, 1, 1)


def test_a_worker_cannot_join_twice(make: Make) -> None:
    scheduler = make(1.0)
    scheduler.handle(joined("a"))
    with pytest.raises(SchedulerError, match="it is here already") as caught:
        scheduler.handle(joined("a"))
    assert [step.event for step in caught.value.history] == [joined("a")]
    assert "Assign(worker='a', shard=0)" in str(caught.value)


@pytest.mark.parametrize("event", [committed("a", 7), lost("a", 7), failed("a", 7)])
def test_a_shard_that_does_not_exist_is_a_mistake(
    make: Make, event: ShardCommitted | ShardLost | ShardFailed
) -> None:
    with pytest.raises(SchedulerError, match=r"there is no such shard; .* nothing"):
        make(1.0).handle(event)


def test_what_is_not_an_event_is_a_mistake(make: Make) -> None:
    with pytest.raises(AssertionError, match="is not an event"):
        make(1.0).handle("tick")  # type: ignore[arg-type]


def test_check_finds_a_state_that_was_changed_behind_its_back() -> None:
    scheduler = Scheduler([(0, 1.0)], attempts=1)
    scheduler.handle(joined("a"))
    scheduler._held["a"].clear()
    with pytest.raises(AssertionError):
        scheduler.check()
