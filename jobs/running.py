"""Running a planned job and judging how it ended."""

import time
from collections.abc import Callable

from jobs.driver import RunResult, run_job
from jobs.planning import PlannedJob
from jobs.progress import NoProgress, ProgressSink
from jobs.run_limits import LimitedProgress, drain_this_process, limits_of
from jobs.stats import JobStats
from manifests.job import JobSpec
from manifests.journal import read_presences
from manifests.open_revision import open_revision
from manifests.records import Presence

JUDGED_FROM_SAMPLES = 200
"""Fewer samples than this fail as a whole only if none of them is good."""


def run_planned(
    planned: PlannedJob,
    job: JobSpec,
    *,
    progress: ProgressSink | None = None,
    time_s: float | None = None,
    take_over: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> RunResult:
    """Run `planned` with the operational settings of `job`; starts Ray unless it is complete.

    After ``time_s`` seconds, or `cluster.max_gpu_hours` of all runs together, the run drains;
    `JobError` where earlier runs have used these up and something is open. With ``take_over``, a
    driver that runs the job already is ended. Call it from the main thread: signals ask for a drain
    while it runs.
    """
    limited = LimitedProgress(
        inner=progress or NoProgress(),
        limits=limits_of(job, time_s=time_s, earlier=_earlier(planned, job)),
        began=clock(),
        clock=clock,
        drain=drain_this_process,
    )
    return run_job(
        planned.store,
        planned.plan,
        job,
        limited,
        drafter_files=planned.drafter_files,
        take_over=take_over,
    )


def _earlier(planned: PlannedJob, job: JobSpec) -> list[Presence]:
    """What drivers before this one have said, where that limits a run that has something to do."""
    if job.cluster.max_gpu_hours is None:
        return []
    opened = open_revision(planned.store, planned.plan)
    if opened is None or len(opened.list_committed()) == len(opened.shards):
        return []
    return read_presences(planned.store)


def failed_too_often(stats: JobStats, *, max_error_fraction: float) -> bool:
    """Whether the error rows are more than a job can end well with."""
    if stats.samples < JUDGED_FROM_SAMPLES:
        return stats.samples > 0 and stats.ok == 0
    return stats.errors > max_error_fraction * stats.samples
