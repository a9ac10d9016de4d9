"""Ray and the driver's loop without storage: null shards a second, one shard a call."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import driver_worker
from benchmarks.driver_jobs import planned_job, record_of
from benchmarks.driver_worker import NullWorker
from jobs.driver.cluster import ray_cluster
from jobs.driver.ledger import Ledger
from jobs.driver.loop import Loop
from jobs.driver.nodes import RayNodes
from jobs.driver.pool import PoolSettings, RayPool
from jobs.driver.tracker import Tracker
from jobs.progress import NoProgress
from manifests.access import Nonce
from manifests.job_running import Cluster
from manifests.open_revision import OpenRevision
from manifests.plan import plan_hash
from manifests.records import CommitRecord, Seal
from schedulers.limits import Limits
from schedulers.machine import Scheduler
from workers.actor import WorkerConfig
from workers.environment import report_environment

NUM_SHARDS = 5_000
NUM_WORKERS = 2
CAPACITY = 16


class NoStops:
    """Nobody asks for a stop."""

    wants_drain = False
    wants_cancel = False


@dataclass(frozen=True, kw_only=True)
class MadeUpLedger(Ledger):
    """Finds the record of every shard without looking; seals nothing."""

    times: list[float] = field(default_factory=list)
    """When a shard was reported."""

    def record(self, shard: int) -> CommitRecord | None:
        """One that was never stored."""
        self.times.append(time.perf_counter())
        return record_of(self.revision.plan, shard, plan_sha256="0" * 64)

    def seal(self) -> Seal:
        """None."""
        plan = self.revision.plan
        return Seal(
            plan_sha256=plan_hash(plan), shards=(), rows=0, samples=0, ok=0, errors=0, sealed=""
        )


def shards_per_s(folder: Path) -> float:
    """From the first report to the last one."""
    import ray

    planned = planned_job(folder, num_shards=NUM_SHARDS)
    ray.cloudpickle.register_pickle_by_value(driver_worker)
    with ray_cluster(Cluster(workers=NUM_WORKERS)):
        loop = _loop(OpenRevision(store=planned.store, plan=planned.plan))
        loop.run()
        loop.looks.close()
    assert isinstance(loop.ledger, MadeUpLedger)
    times = sorted(loop.ledger.times)
    return (len(times) - 1) / (times[-1] - times[0])


def _loop(revision: OpenRevision) -> Loop:
    tracker = Tracker(plan=revision.plan, shards=revision.shards)
    settings = PoolSettings(
        config=lambda name: WorkerConfig(
            name=name,
            store_uri="",
            plan_sha256="",
            job_json="",
            nonce=Nonce(run="", value=""),
            drafter_files=(),
        ),
        environment=report_environment(),
        num_cpus=1,
        capacity=CAPACITY,
        lease_s=60.0,
        worker_class=NullWorker,
    )
    return Loop(
        ledger=MadeUpLedger(revision=revision, epoch=tracker.epoch),
        scheduler=Scheduler(
            [(shard.shard, shard.expected_cost) for shard in revision.shards],
            num_workers=NUM_WORKERS,
            limits=Limits(capacity=CAPACITY, lease_s=60.0),
        ),
        pool=RayPool(settings),
        nodes=RayNodes(),
        tracker=tracker,
        progress=NoProgress(),
        stop_requests=NoStops(),
        clock=time.monotonic,
        refuse_at_once=True,
    )
