"""The Python API: what `import spotbatch` offers."""

from jobs.calls import extend, plan, run, status, submit
from jobs.driver.result import RunResult
from jobs.errors import JobError, NoJobError, ScoringError
from jobs.extending import Extended
from jobs.job_file import load_job
from jobs.planning import PlannedJob, plan_job, preview_job
from jobs.progress import NoProgress, ProgressSink, open_progress
from jobs.reading import OpenJob, open_job
from jobs.results import iterate_results, load_results
from jobs.running import run_planned
from jobs.stats import JobStats, job_stats
from jobs.status import JobStatus, read_status
from jobs.submitting import Submission
from jobs.verify import Verification, verify_job
from manifests.errors import (
    DamagedError,
    FingerprintError,
    InputError,
    JobFileError,
    ManifestError,
    RevisionError,
)
from manifests.job import JobSpec

__all__ = [
    "DamagedError",
    "Extended",
    "FingerprintError",
    "InputError",
    "JobError",
    "JobFileError",
    "JobSpec",
    "JobStats",
    "JobStatus",
    "ManifestError",
    "NoJobError",
    "NoProgress",
    "OpenJob",
    "PlannedJob",
    "ProgressSink",
    "RevisionError",
    "RunResult",
    "ScoringError",
    "Submission",
    "Verification",
    "extend",
    "iterate_results",
    "job_stats",
    "load_job",
    "load_results",
    "open_job",
    "open_progress",
    "plan",
    "plan_job",
    "preview_job",
    "read_status",
    "run",
    "run_planned",
    "status",
    "submit",
    "verify_job",
]
