"""One run of a planned job, from what storage says to what storage says."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jobs.driver.cluster import exposure_warning, ray_cluster
from jobs.driver.epochs import crash_loop_message, num_barren_drivers
from jobs.driver.errors import RefusedWorkerError
from jobs.driver.ledger import Ledger
from jobs.driver.limits import limits_of
from jobs.driver.loop import Loop
from jobs.driver.nodes import RayNodes, resources_in_words
from jobs.driver.pool import PoolSettings, RayPool
from jobs.driver.result import Outcome, RunResult
from jobs.driver.rivals import settle_rivals
from jobs.driver.stops import Signals
from jobs.driver.tracker import Tracker
from jobs.progress import ProgressSink
from manifests.access import Nonce, close_access, open_access
from manifests.fingerprints import FileIdentity
from manifests.job import JobSpec
from manifests.journal import read_presences
from manifests.open_revision import open_revision
from manifests.plan import Plan, plan_hash
from manifests.protocol import read_seal
from manifests.records import Seal
from manifests.store.base import Store
from schedulers import instructions
from schedulers.machine import Scheduler
from workers.actor import WorkerConfig
from workers.environment import report_environment
from workers.gate import folder_from_environment

CAPACITY = 2  # shards that one worker holds


def run_job(
    store: Store,
    plan: Plan,
    job: JobSpec,
    progress: ProgressSink,
    *,
    drafter_files: Sequence[FileIdentity] | None = None,
    capacity: int = CAPACITY,
    take_over: bool = False,
) -> RunResult:
    """Run what a planned job has open until it is sealed, drained, cancelled or out of budget.

    `job` is this run's specification; its operational fields may differ from the plan's, and so may
    the drafter, whose files are then `drafter_files`. Shards that have a commit record are not
    decoded again, and a job that is complete starts nothing. A worker holds up to `capacity`
    shards. Where another driver runs the job, `take_over` ends it. Call it from the main thread: it
    takes SIGINT and SIGTERM over while it runs.
    Raises `RivalDriverError` where another driver runs the job and is not to be ended,
    `DriverError` where the job cannot run, and `DamagedError` where storage is damaged.
    """
    revision = open_revision(store, plan)
    if revision is None:
        return _result("complete", committed=len(plan.shards), seal=read_seal(store))
    before = revision.list_committed()
    tracker = Tracker(
        plan=revision.plan,
        shards=revision.shards,
        before=before,
        gpus_per_worker=job.cluster.gpus_per_worker or 1.0,
    )
    ledger = Ledger(revision=revision, epoch=tracker.epoch)
    if len(before) == len(revision.shards):
        return _result("sealed", committed=len(before), seal=ledger.seal())
    message = _crash_loop(store, job, num_committed=len(before))
    if message is not None:
        return replace(
            _result("crash_loop", committed=len(before)),
            num_shards=len(revision.shards),
            message=message,
        )
    settle_rivals(store, take_over=take_over)
    ledger.store_presence(tracker.presence(num_workers=0, now=time.monotonic()))
    files = plan.drafter_files if drafter_files is None else drafter_files
    run = Run(
        ledger=ledger,
        job=revision.job(job),
        progress=progress,
        tracker=tracker,
        capacity=capacity,
        drafter_files=tuple(files),
    )
    return _run_on_ray(run)


def _result(outcome: Outcome, *, committed: int, seal: Seal | None = None) -> RunResult:
    """Where all that was committed was so before."""
    return RunResult(
        outcome=outcome,
        num_shards=committed,
        num_committed=committed,
        num_before=committed,
        seal=seal,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run that has something to do."""

    ledger: Ledger
    job: JobSpec
    progress: ProgressSink
    tracker: Tracker
    capacity: int
    drafter_files: tuple[FileIdentity, ...]


def _crash_loop(store: Store, job: JobSpec, *, num_committed: int) -> str | None:
    num_barren = num_barren_drivers(read_presences(store), num_committed=num_committed)
    return crash_loop_message(num_barren, limit=job.retry.max_barren_drivers)


def _run_on_ray(run: Run) -> RunResult:
    store = run.ledger.revision.store
    warning = exposure_warning(run.job.cluster)
    if warning is not None:
        run.progress.message(warning)
    nonce = open_access(store)
    # Ray sets its own handlers when it starts; ours have to come after them.
    with ray_cluster(run.job.cluster), Signals() as signals:
        settings = _pool_settings(run, nonce=nonce)
        pool = RayPool(settings)
        loop = Loop(
            ledger=run.ledger,
            scheduler=_scheduler(run),
            pool=pool,
            nodes=RayNodes(),
            tracker=run.tracker,
            progress=run.progress,
            stop_requests=signals,
            clock=time.monotonic,
            refuse_at_once=run.job.cluster.address is None,
        )
        try:
            loop.run(unread=sorted(run.tracker.before))
            return _conclude(loop, run.job, settings=settings)
        finally:
            pool.end_all()
            loop.say_farewell()
            close_access(store, nonce)


def _scheduler(run: Run) -> Scheduler:
    return Scheduler(
        [(shard.shard, shard.expected_cost) for shard in run.tracker.shards],
        committed=run.tracker.before,
        num_workers=run.job.cluster.workers,
        deaths=run.ledger.deaths(),
        limits=limits_of(run.job, capacity=run.capacity),
    )


def _pool_settings(run: Run, *, nonce: Nonce) -> PoolSettings:
    cluster = run.job.cluster
    return PoolSettings(
        config=_worker_config(run, nonce=nonce),
        environment=report_environment(),
        num_cpus=cluster.reserved_cpus,
        num_gpus=cluster.gpus_per_worker,
        capacity=run.capacity,
        lease_s=run.job.retry.lease_s,
    )


def _worker_config(run: Run, *, nonce: Nonce) -> Callable[[str], WorkerConfig]:
    revision = run.ledger.revision
    plan_sha256, job_json = plan_hash(revision.plan), run.job.model_dump_json()
    gate = folder_from_environment()
    return lambda name: WorkerConfig(
        name=name,
        store_uri=revision.store.uri,
        plan_sha256=plan_sha256,
        job_json=job_json,
        revision=revision.number,
        nonce=nonce,
        drafter_files=run.drafter_files,
        epoch=run.ledger.epoch,
        gate_folder=gate,
    )


def _conclude(loop: Loop, job: JobSpec, *, settings: PoolSettings) -> RunResult:
    """The last word has storage: what was committed counts, whatever the run was told."""
    revision, ending = loop.ledger.revision, loop.ending
    if ending.refusal is not None and not ending.num_joined:
        raise RefusedWorkerError(ending.refusal)
    committed = revision.list_committed()
    is_whole = len(committed) == len(revision.shards)
    outcome: Outcome = "sealed" if is_whole else _outcome(loop)
    return RunResult(
        outcome=outcome,
        num_shards=len(revision.shards),
        num_committed=len(committed),
        num_before=len(loop.tracker.before),
        seal=(ending.seal or loop.ledger.seal()) if is_whole else None,
        given_up={s: reason for s, reason in ending.given_up.items() if s not in committed},
        message=_message(outcome, loop, job, settings=settings),
    )


def _outcome(loop: Loop) -> Outcome:
    match loop.ending.last:
        case instructions.Cancelled():
            return "cancelled"
        case instructions.Starved():
            return "starved"
        case instructions.Drained():
            return "errors" if loop.ending.errors else "drained"
        case _:
            return "failed"


def _message(outcome: Outcome, loop: Loop, job: JobSpec, *, settings: PoolSettings) -> str | None:
    errors = loop.ending.errors
    if outcome == "starved":
        return (
            f"no worker had a place for {job.cluster.start_timeout_s:g} s "
            f"(cluster.start_timeout_s): {resources_in_words(settings.resources)}; add nodes or "
            "lower cluster.cpus_per_worker or cluster.gpus_per_worker, and run it again"
        )
    if outcome == "errors" and errors is not None:
        return (
            f"{errors.errors} of {errors.samples} samples are errors, more than the share "
            f"{job.retry.max_error_fraction:g} that retry.max_error_fraction allows; mend the "
            "input or raise it, and run it again"
        )
    return None
