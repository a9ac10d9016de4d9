"""Running a planned job and judging how it ended."""

from jobs.driver import RunResult, run_job
from jobs.planning import PlannedJob
from jobs.progress import ProgressSink
from jobs.stats import JobStats
from manifests.job import JobSpec

MAX_ERROR_FRACTION = 0.05
JUDGED_FROM_SAMPLES = 200
"""Fewer samples than this fail as a whole only if none of them is good."""


def run_planned(planned: PlannedJob, job: JobSpec, *, progress: ProgressSink) -> RunResult:
    """Run `planned` with the operational settings of `job`; starts Ray unless it is complete.

    Call it from the main thread: signals ask for a drain while it runs.
    """
    return run_job(planned.store, planned.plan, job, progress, drafter_files=planned.drafter_files)


def failed_too_often(stats: JobStats) -> bool:
    """Whether the error rows are more than a job can end well with."""
    if stats.samples < JUDGED_FROM_SAMPLES:
        return stats.samples > 0 and stats.ok == 0
    return stats.errors > MAX_ERROR_FRACTION * stats.samples
