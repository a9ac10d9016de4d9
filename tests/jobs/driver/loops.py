"""A loop over a scripted pool, and what workers may report to it."""

from itertools import count
from typing import Any

from jobs.driver.ledger import Ledger
from jobs.driver.loop import Loop
from jobs.driver.notices import Reported
from jobs.driver.tracker import Tracker
from manifests.open_revision import OpenRevision
from schedulers.limits import Limits
from schedulers.machine import Scheduler
from tests.jobs.driver.fakes import (
    FakeLooks,
    FakeNodes,
    FakePool,
    FakeSink,
    FakeStops,
)
from tests.manifests.builders import StoredJob
from workers.attempt import ShardOutcome

OTHER_ATTEMPT = "00000000000000bb"


def report(worker: str, shard: int, *, attempt: str) -> Reported:
    return Reported(
        worker=worker, outcome=ShardOutcome(shard=shard, attempt=attempt, status="committed")
    )


def failure(worker: str, shard: int, *, is_worker_usable: bool = True) -> Reported:
    outcome = ShardOutcome(
        shard=shard,
        attempt=OTHER_ATTEMPT,
        status="failed",
        error="ValueError: no",
        is_worker_usable=is_worker_usable,
    )
    return Reported(worker=worker, outcome=outcome)


def make_loop(
    job: StoredJob,
    pool: FakePool,
    *,
    num_workers: int = 1,
    refuse_at_once: bool = True,
    stops: FakeStops | None = None,
    nodes: FakeNodes | None = None,
    **limits: Any,
) -> Loop:
    revision = OpenRevision(store=job.store, plan=job.plan)
    before = revision.list_committed()
    tracker = Tracker(plan=job.plan, shards=job.plan.shards, before=before)
    ledger = Ledger(revision=revision, epoch=tracker.epoch)
    return Loop(
        ledger=ledger,
        scheduler=Scheduler(
            [(shard.shard, shard.expected_cost) for shard in job.plan.shards],
            committed=before,
            num_workers=num_workers,
            deaths=ledger.deaths(),
            limits=Limits(**({"attempts": 2, "lease_s": 1e9, "straggler_gain_s": 1e9} | limits)),
        ),
        pool=pool,
        nodes=nodes or FakeNodes(),
        looks=FakeLooks(),
        tracker=tracker,
        progress=FakeSink(),
        stop_requests=stops or FakeStops(),
        clock=(step / 20.0 for step in count()).__next__,
        refuse_at_once=refuse_at_once,
    )


def messages(loop: Loop) -> str:
    assert isinstance(loop.progress, FakeSink)
    return "\n".join(loop.progress.messages)
