"""One run of a planned job, from what storage says to what storage says."""

import time
from collections.abc import Callable, Mapping

from jobs.driver.cluster import ray_cluster
from jobs.driver.loop import Loop
from jobs.driver.pool import PoolSettings, RayPool
from jobs.driver.result import Outcome, RunResult
from jobs.driver.signals import SignalCounter
from jobs.driver.tracker import Tracker
from jobs.driver.watch import Deadlines
from jobs.progress import ProgressSink
from manifests.job import JobSpec
from manifests.plan import Plan, plan_hash
from manifests.protocol import read_records, read_seal, seal_job
from manifests.records import CommitRecord
from manifests.store.base import Store
from schedulers.machine import Scheduler
from workers.actor import WorkerConfig
from workers.environment import report_environment
from workers.gate import folder_from_environment

CAPACITY = 2  # shards that one worker holds
DRAIN_S = 300.0


def run_job(
    store: Store,
    plan: Plan,
    job: JobSpec,
    progress: ProgressSink,
    *,
    deadlines: Deadlines | None = None,
    drain_s: float = DRAIN_S,
) -> RunResult:
    """Run a planned job until it is sealed, drained, cancelled or out of budget.

    `job` is this run's specification; its operational fields may differ from the plan's. Shards
    that have a commit record are not decoded again, and a job that is complete starts nothing.
    Call it from the main thread: it takes SIGINT and SIGTERM over while it runs.
    Raises `DriverError` where the job cannot run, and `DamagedError` where storage is damaged.
    """
    seal = read_seal(store)
    if seal is not None:
        done = len(seal.shards)
        return RunResult(outcome="complete", num_committed=done, num_before=done, seal=seal)
    before = read_records(store, plan)
    if len(before) == len(plan.shards):
        return _conclude(store, plan, before=before, loop=None)
    loop = _run_on_ray(
        store,
        plan,
        job,
        progress,
        before=before,
        deadlines=deadlines or Deadlines(),
        drain_s=drain_s,
    )
    return _conclude(store, plan, before=before, loop=loop)


def _run_on_ray(
    store: Store,
    plan: Plan,
    job: JobSpec,
    progress: ProgressSink,
    *,
    before: Mapping[int, CommitRecord],
    deadlines: Deadlines,
    drain_s: float,
) -> Loop:
    num_workers = min(job.cluster.workers, len(plan.shards) - len(before))
    # Ray sets its own handlers when it starts; ours have to come after them.
    with ray_cluster(job.cluster), SignalCounter() as signals:
        pool = RayPool(
            PoolSettings(
                config=_worker_config(store, plan, job),
                environment=report_environment(),
                num_cpus=job.cluster.threads,
                capacity=CAPACITY,
                deadlines=deadlines,
            )
        )
        loop = Loop(
            store=store,
            plan=plan,
            scheduler=Scheduler(
                [(shard.shard, shard.expected_cost) for shard in plan.shards],
                committed=before,
                attempts=job.retry.attempts,
                capacity=CAPACITY,
                num_workers=num_workers,
                drain_s=drain_s,
            ),
            pool=pool,
            tracker=Tracker(plan=plan, records=dict(before)),
            progress=progress,
            stop_requests=signals,
            clock=time.monotonic,
            num_workers=num_workers,
            refuse_at_once=job.cluster.address is None,
        )
        try:
            loop.run()
        finally:
            pool.end_all()
            loop.say_farewell()
    return loop


def _worker_config(store: Store, plan: Plan, job: JobSpec) -> Callable[[str], WorkerConfig]:
    plan_sha256, job_json, gate = plan_hash(plan), job.model_dump_json(), folder_from_environment()
    return lambda name: WorkerConfig(
        name=name,
        store_uri=store.uri,
        plan_sha256=plan_sha256,
        job_json=job_json,
        gate_folder=gate,
    )


def _conclude(
    store: Store, plan: Plan, *, before: Mapping[int, CommitRecord], loop: Loop | None
) -> RunResult:
    """The last word has storage: what was committed counts, whatever the run was told."""
    records = read_records(store, plan)
    if len(records) == len(plan.shards):
        seal = (loop and loop.seal) or seal_job(store, plan)
        return RunResult(
            outcome="sealed", num_committed=len(records), num_before=len(before), seal=seal
        )
    assert loop is not None, "shards are missing and nothing was run"
    return RunResult(
        outcome=_outcome(loop),
        num_committed=len(records),
        num_before=len(before),
        given_up={s: reason for s, reason in loop.given_up.items() if s not in records},
    )


def _outcome(loop: Loop) -> Outcome:
    if loop.is_cancelled:
        return "cancelled"
    return "drained" if loop.is_drained else "failed"
