"""One run of a planned job, from what storage says to what storage says."""

import time
from collections.abc import Callable, Mapping, Sequence

from jobs.driver.cluster import ray_cluster
from jobs.driver.loop import Loop
from jobs.driver.pool import PoolSettings, RayPool
from jobs.driver.result import Outcome, RunResult
from jobs.driver.signals import SignalCounter
from jobs.driver.tracker import Tracker
from jobs.driver.watch import Deadlines
from jobs.progress import ProgressSink
from manifests.access import Nonce, close_access, open_access
from manifests.fingerprints import FileIdentity
from manifests.job import JobSpec
from manifests.open_revision import OpenRevision, open_revision
from manifests.plan import Plan, plan_hash
from manifests.protocol import read_seal
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
    drafter_files: Sequence[FileIdentity] | None = None,
) -> RunResult:
    """Run a planned job until it is sealed, drained, cancelled or out of budget.

    `job` is this run's specification; its operational fields may differ from the plan's, and so may
    the drafter, whose files are then `drafter_files`. Shards
    that have a commit record are not decoded again, and a job that is complete starts nothing.
    Call it from the main thread: it takes SIGINT and SIGTERM over while it runs.
    Raises `DriverError` where the job cannot run, and `DamagedError` where storage is damaged.
    """
    revision = open_revision(store, plan)
    if revision is None:
        seal = read_seal(store)
        done = len(plan.shards)
        return RunResult(
            outcome="complete", num_shards=done, num_committed=done, num_before=done, seal=seal
        )
    before = revision.read_records()
    if len(before) == len(revision.shards):
        return _conclude(revision, before=before, loop=None)
    loop = _run_on_ray(
        revision,
        revision.job(job),
        progress,
        before=before,
        deadlines=deadlines or Deadlines(),
        drain_s=drain_s,
        drafter_files=plan.drafter_files if drafter_files is None else drafter_files,
    )
    return _conclude(revision, before=before, loop=loop)


def _run_on_ray(
    revision: OpenRevision,
    job: JobSpec,
    progress: ProgressSink,
    *,
    before: Mapping[int, CommitRecord],
    deadlines: Deadlines,
    drain_s: float,
    drafter_files: Sequence[FileIdentity],
) -> Loop:
    nonce = open_access(revision.store)
    num_workers = min(job.cluster.workers, len(revision.shards) - len(before))
    # Ray sets its own handlers when it starts; ours have to come after them.
    with ray_cluster(job.cluster), SignalCounter() as signals:
        pool = RayPool(
            PoolSettings(
                config=_worker_config(revision, job, nonce=nonce, drafter_files=drafter_files),
                environment=report_environment(),
                num_cpus=job.cluster.threads,
                capacity=CAPACITY,
                deadlines=deadlines,
            )
        )
        loop = Loop(
            revision=revision,
            scheduler=Scheduler(
                [(shard.shard, shard.expected_cost) for shard in revision.shards],
                committed=before,
                attempts=job.retry.attempts,
                capacity=CAPACITY,
                num_workers=num_workers,
                drain_s=drain_s,
            ),
            pool=pool,
            tracker=Tracker(plan=revision.plan, records=dict(before)),
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
            close_access(revision.store, nonce)
    return loop


def _worker_config(
    revision: OpenRevision, job: JobSpec, *, nonce: Nonce, drafter_files: Sequence[FileIdentity]
) -> Callable[[str], WorkerConfig]:
    plan_sha256, job_json = plan_hash(revision.plan), job.model_dump_json()
    store_uri, gate = revision.store.uri, folder_from_environment()
    return lambda name: WorkerConfig(
        name=name,
        store_uri=store_uri,
        plan_sha256=plan_sha256,
        job_json=job_json,
        revision=revision.number,
        nonce=nonce,
        drafter_files=tuple(drafter_files),
        gate_folder=gate,
    )


def _conclude(
    revision: OpenRevision, *, before: Mapping[int, CommitRecord], loop: Loop | None
) -> RunResult:
    """The last word has storage: what was committed counts, whatever the run was told."""
    records = revision.read_records()
    if len(records) == len(revision.shards):
        seal = (loop and loop.seal) or revision.seal()
        return RunResult(
            outcome="sealed",
            num_shards=len(records),
            num_committed=len(records),
            num_before=len(before),
            seal=seal,
        )
    assert loop is not None, "shards are missing and nothing was run"
    return RunResult(
        outcome=_outcome(loop),
        num_shards=len(revision.shards),
        num_committed=len(records),
        num_before=len(before),
        given_up={s: reason for s, reason in loop.given_up.items() if s not in records},
    )


def _outcome(loop: Loop) -> Outcome:
    if loop.is_cancelled:
        return "cancelled"
    return "drained" if loop.is_drained else "failed"
