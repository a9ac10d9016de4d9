"""What ends a run early: drains, cancels, requests through storage, errors."""

from typing import Any

import pytest

from jobs.driver.ledger import Ledger
from jobs.driver.notices import Notice
from jobs.driver.tracker import Tracker
from manifests.control import ask_drivers
from manifests.open_revision import OpenRevision
from manifests.records import Presence
from schedulers.instructions import Cancelled, Drained
from tests.jobs.driver.fakes import (
    FakePool,
    FakeStops,
    commit,
    join,
)
from tests.jobs.driver.loops import make_loop, messages
from tests.manifests.builders import StoredJob


def stopping_at(job: StoredJob, stops: FakeStops, *, stop: str) -> FakePool:
    """A pool under which somebody asks for a stop when two shards are leased."""

    def react(worker: str, shard: int) -> list[Notice]:
        if len(pool.assigned) == 2:
            setattr(stops, stop, True)
        return commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    return pool


def test_a_drain_finishes_what_runs_and_begins_nothing(job: StoredJob) -> None:
    stops = FakeStops()
    pool = stopping_at(job, stops, stop="wants_drain")
    loop = make_loop(job, pool, stops=stops)
    loop.run()
    assert loop.ending.last == Drained()
    assert len(pool.assigned) == 2
    assert sorted(loop.tracker.committed_shards) == sorted(shard for _, shard in pool.assigned)
    assert "draining: 2 shards" in messages(loop)


def test_a_drain_ends_at_its_deadline_whatever_still_runs(job: StoredJob) -> None:
    stops = FakeStops()

    def react(worker: str, shard: int) -> list[Notice]:
        stops.wants_drain = True
        return []

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool, stops=stops, drain_s=30.0)
    loop.run()
    assert loop.ending.last == Drained()
    assert not loop.tracker.committed_shards


def test_a_cancel_ends_the_run_at_once(job: StoredJob) -> None:
    stops = FakeStops()
    loop = make_loop(job, stopping_at(job, stops, stop="wants_cancel"), stops=stops)
    loop.run()
    assert loop.ending.last == Cancelled()
    assert not loop.tracker.committed_shards


@pytest.mark.parametrize(("request_", "end"), [("drain", Drained()), ("cancel", Cancelled())])
def test_what_is_asked_through_storage_is_done(
    job: StoredJob, request_: Any, end: Drained | Cancelled
) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        loop.ledger.store_presence(loop.tracker.presence(num_workers=1, now=0.0))
        assert ask_drivers(job.store, request_) == [loop.ledger.epoch]
        return []

    loop = make_loop(job, FakePool(on_start=join, on_assign=react), drain_s=30.0)
    loop.run()
    assert loop.ending.last == end


def test_a_request_to_another_driver_is_not_obeyed(job: StoredJob) -> None:
    other = Ledger(revision=OpenRevision(store=job.store, plan=job.plan), epoch="other")
    other.store_presence(replace_epoch(job, "other"))
    assert ask_drivers(job.store, "cancel") == ["other"]
    loop = make_loop(job, FakePool(on_start=join, on_assign=commit(job)))
    loop.run()
    assert loop.ending.seal is not None


def replace_epoch(job: StoredJob, epoch: str) -> Presence:
    tracker = Tracker(plan=job.plan, shards=job.plan.shards, epoch=epoch)
    return tracker.presence(num_workers=0, now=0.0)


def test_too_many_errors_stop_the_run(job: StoredJob) -> None:
    job.commit(3)
    loop = make_loop(
        job,
        FakePool(on_start=join, on_assign=lambda worker, shard: []),
        judged_from_samples=1,
        max_error_fraction=0.0,
        drain_s=30.0,
    )
    loop.run(unread=[3])
    assert loop.ending.errors is not None
    assert (loop.ending.errors.errors, loop.ending.errors.samples) == (2, 4)
    assert "retry.max_error_fraction" in messages(loop)
