"""Figures for people: records, plus what workers say of shards without one."""

from typing import Any

import pytest

from jobs.driver.tracker import Tracker, totals_of
from manifests.keys import presence_key
from manifests.records import CommitRecord
from tests.manifests.builders import StoredJob
from workers.actor import Heartbeat
from workers.attempt import Attempt
from workers.stream import Totals


def record(job: StoredJob, shard: int, *, tokens: int = 0) -> CommitRecord:
    made = job.commit(shard).record
    return made.model_copy(update={"counters": {"tokens": tokens, "nfe": 2 * tokens}})


def beat(*running: Attempt, **totals: Any) -> Heartbeat:
    return Heartbeat(running=running, num_steps=0, totals=Totals(**totals))


@pytest.fixture
def tracker(job: StoredJob) -> Tracker:
    """Of a run that found shard 0 committed, with 100 tokens."""
    tracker = Tracker(plan=job.plan, shards=job.plan.shards, before=frozenset({0}))
    tracker.committed(record(job, 0, tokens=100))
    return tracker


def test_totals_are_those_of_the_record(job: StoredJob) -> None:
    assert totals_of(record(job, 3, tokens=4)) == Totals(ok=2, errors=2, tokens=4, nfe=8)


def test_a_listed_shard_counts_as_done_before_its_record_is_read(job: StoredJob) -> None:
    tracker = Tracker(plan=job.plan, shards=job.plan.shards, before=frozenset({0, 1}))
    presence = tracker.presence(num_workers=0, now=0.0)
    assert (presence.shards_before, presence.shards_done, presence.samples_ok) == (2, 2, 0)


def test_gpus_are_counted_while_workers_hold_them(job: StoredJob) -> None:
    tracker = Tracker(plan=job.plan, shards=job.plan.shards, gpus_per_worker=0.5)
    said = [tracker.presence(num_workers=n, now=t).gpu_s for n, t in ((0, 5.0), (2, 15.0), (1, 19))]
    assert said == [0.0, 10.0, 12.0]
    assert tracker.presence(num_workers=0, now=50.0, finished=True).gpu_s == 12.0


def test_samples_without_a_record_are_counted_as_the_worker_says(tracker: Tracker) -> None:
    tracker.heard("w", beat(ok=2, tokens=9, nfe=5))
    presence = tracker.presence(num_workers=1, now=0.0)
    assert (presence.samples_ok, presence.tokens, presence.nfe) == (6, 109, 205)
    assert (presence.rows_done, presence.shards_done, presence.shards_total) == (3, 1, 4)


def test_committed_samples_are_not_counted_twice(tracker: Tracker, job: StoredJob) -> None:
    tracker.heard("w", beat(ok=5, tokens=12))
    made = record(job, 1, tokens=9)
    assert tracker.committed(made, worker="w")
    assert not tracker.committed(made, worker="w")
    presence = tracker.presence(num_workers=1, now=0.0)
    assert (presence.samples_ok, presence.tokens) == (4 + 5, 100 + 12)


def test_a_lost_attempt_never_makes_figures_negative(tracker: Tracker, job: StoredJob) -> None:
    tracker.committed(record(job, 1, tokens=9), worker="w")
    tracker.heard("w", beat())
    assert tracker.presence(num_workers=1, now=0.0).tokens == 109


def test_what_a_worker_that_left_had_not_committed_is_not_counted(tracker: Tracker) -> None:
    attempt = Attempt(shard=2, attempt="0" * 16, phase="decoding")
    tracker.heard("w", beat(attempt, tokens=50))
    assert tracker.left("w") == {2: "0" * 16}
    assert tracker.presence(num_workers=1, now=0.0).tokens == 100
    assert tracker.left("w") == {}


def test_the_rate_is_that_of_this_run_since_its_first_worker(
    tracker: Tracker, job: StoredJob
) -> None:
    tracker.joined(10.0)
    tracker.joined(14.0)
    tracker.committed(record(job, 1, tokens=30), worker="w")
    assert tracker.presence(num_workers=1, now=20.0).rate_tokens_s == 3.0


def test_there_is_no_rate_before_a_worker_joined(tracker: Tracker) -> None:
    assert tracker.presence(num_workers=0, now=20.0).rate_tokens_s == 0.0


def test_every_driver_has_an_epoch_that_is_a_key(job: StoredJob) -> None:
    first, second = (Tracker(plan=job.plan, shards=job.plan.shards).epoch for _ in range(2))
    assert first != second
    assert presence_key(first) != presence_key(second)


def test_drafts_and_errors_by_class_add_up_over_records_and_workers(
    tracker: Tracker, job: StoredJob
) -> None:
    counters = {"drafted": 10, "accepted": 4, "errors:NullPrompt": 1}
    tracker.committed(record(job, 1).model_copy(update={"counters": counters}))
    said = Totals(errors=3, drafted=6, accepted=1, error_classes={"NullPrompt": 1, "TooLong": 2})
    tracker.heard("w", Heartbeat(running=(), num_steps=0, totals=said))
    presence = tracker.presence(num_workers=1, now=0.0)
    assert (presence.drafted, presence.accepted) == (16, 5)
    assert presence.error_classes == {"NullPrompt": 2, "TooLong": 2}


def test_errors_of_a_class_that_were_committed_are_not_counted_twice(
    tracker: Tracker, job: StoredJob
) -> None:
    made = record(job, 1).model_copy(update={"counters": {"errors:TooLong": 2}})
    tracker.committed(made, worker="w")
    said = Totals(errors=3, error_classes={"TooLong": 3})
    tracker.heard("w", Heartbeat(running=(), num_steps=0, totals=said))
    assert tracker.presence(num_workers=1, now=0.0).error_classes == {"TooLong": 3}


def test_the_time_left_follows_from_the_costs_done_in_this_run(
    tracker: Tracker, job: StoredJob
) -> None:
    tracker.joined(10.0)
    assert tracker.presence(num_workers=1, now=20.0).eta_s is None
    tracker.committed(record(job, 1), worker="w")
    costs = [shard.expected_cost for shard in job.plan.shards]
    assert tracker.presence(num_workers=1, now=20.0).eta_s == pytest.approx(
        10.0 * sum(costs[2:]) / costs[1]
    )


def test_samples_without_a_record_shorten_the_time_left(tracker: Tracker, job: StoredJob) -> None:
    tracker.joined(10.0)
    tracker.committed(record(job, 1), worker="w")
    committed_only = tracker.presence(num_workers=1, now=20.0).eta_s
    tracker.heard("v", beat(ok=1))
    with_more = tracker.presence(num_workers=1, now=20.0).eta_s
    assert committed_only is not None
    assert with_more is not None
    assert with_more < committed_only


def test_no_time_is_left_when_all_is_committed(tracker: Tracker, job: StoredJob) -> None:
    tracker.joined(10.0)
    for shard in (1, 2, 3):
        tracker.committed(record(job, shard), worker="w")
    assert tracker.presence(num_workers=1, now=20.0).eta_s == 0.0
