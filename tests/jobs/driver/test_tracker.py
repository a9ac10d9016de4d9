"""Figures for people: records, plus what workers say of shards without one."""

from pathlib import Path
from typing import Any

import pytest

from jobs.driver.tracker import Tracker, totals_of
from manifests.keys import presence_key
from manifests.records import CommitRecord
from tests.manifests.builders import StoredJob
from workers.actor import Heartbeat
from workers.stream import Totals


def record(job: StoredJob, shard: int, *, tokens: int = 0) -> CommitRecord:
    made = job.commit(shard).record
    return made.model_copy(update={"counters": {"tokens": tokens, "nfe": 2 * tokens}})


def beat(**totals: Any) -> Heartbeat:
    return Heartbeat(running=(), num_steps=0, totals=Totals(**totals))


@pytest.fixture
def tracker(job: StoredJob) -> Tracker:
    """Of a run that found shard 0 committed, with 100 tokens."""
    return Tracker(plan=job.plan, records={0: record(job, 0, tokens=100)})


def test_totals_add_records_up(job: StoredJob) -> None:
    records = [record(job, 0, tokens=3), record(job, 3, tokens=4)]
    assert totals_of(records) == Totals(ok=6, errors=2, tokens=7, nfe=14)


def test_samples_without_a_record_are_counted_as_the_worker_says(tracker: Tracker) -> None:
    presence = tracker.presence({"w": beat(ok=2, tokens=9, nfe=5)}, num_workers=1, now=0.0)
    assert (presence.samples_ok, presence.tokens, presence.nfe) == (6, 109, 205)
    assert (presence.rows_done, presence.shards_done, presence.shards_total) == (3, 1, 4)


def test_committed_samples_are_not_counted_twice(tracker: Tracker, job: StoredJob) -> None:
    tracker.committed(record(job, 1, tokens=9), worker="w")
    presence = tracker.presence({"w": beat(ok=5, tokens=12)}, num_workers=1, now=0.0)
    assert (presence.samples_ok, presence.tokens) == (4 + 5, 100 + 12)


def test_a_lost_attempt_never_makes_figures_negative(tracker: Tracker, job: StoredJob) -> None:
    tracker.committed(record(job, 1, tokens=9), worker="w")
    assert tracker.presence({"w": beat()}, num_workers=1, now=0.0).tokens == 109


def test_the_rate_is_that_of_this_run_since_its_first_worker(
    tracker: Tracker, job: StoredJob
) -> None:
    tracker.joined(10.0)
    tracker.joined(14.0)
    tracker.committed(record(job, 1, tokens=30), worker="w")
    assert tracker.presence({}, num_workers=1, now=20.0).rate_tokens_s == 3.0


def test_there_is_no_rate_before_a_worker_joined(tracker: Tracker) -> None:
    assert tracker.presence({}, num_workers=0, now=20.0).rate_tokens_s == 0.0


def test_every_driver_has_an_epoch_that_is_a_key(job: StoredJob, tmp_path: Path) -> None:
    first, second = (Tracker(plan=job.plan, records={}).epoch for _ in range(2))
    assert first != second
    assert presence_key(first) != presence_key(second)


def test_drafts_and_errors_by_class_add_up_over_records_and_workers(job: StoredJob) -> None:
    counters = {"drafted": 10, "accepted": 4, "errors:NullPrompt": 1}
    known = record(job, 0).model_copy(update={"counters": counters})
    tracker = Tracker(plan=job.plan, records={0: known})
    said = Totals(errors=3, drafted=6, accepted=1, error_classes={"NullPrompt": 1, "TooLong": 2})
    presence = tracker.presence(
        {"w": Heartbeat(running=(), num_steps=0, totals=said)}, num_workers=1, now=0.0
    )
    assert (presence.drafted, presence.accepted) == (16, 5)
    assert presence.error_classes == {"NullPrompt": 2, "TooLong": 2}


def test_the_time_left_follows_from_the_costs_done_in_this_run(
    tracker: Tracker, job: StoredJob
) -> None:
    tracker.joined(10.0)
    assert tracker.presence({}, num_workers=1, now=20.0).eta_s is None
    tracker.committed(record(job, 1), worker="w")
    costs = [shard.expected_cost for shard in job.plan.shards]
    assert tracker.presence({}, num_workers=1, now=20.0).eta_s == pytest.approx(
        10.0 * sum(costs[2:]) / costs[1]
    )


def test_samples_without_a_record_shorten_the_time_left(tracker: Tracker, job: StoredJob) -> None:
    tracker.joined(10.0)
    tracker.committed(record(job, 1), worker="w")
    committed_only = tracker.presence({}, num_workers=1, now=20.0).eta_s
    with_more = tracker.presence({"v": beat(ok=1)}, num_workers=1, now=20.0).eta_s
    assert committed_only is not None
    assert with_more is not None
    assert with_more < committed_only
