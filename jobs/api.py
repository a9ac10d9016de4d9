"""The Python API: what `import spotbatch` offers."""

from jobs.errors import JobError, NoJobError, ScoringError
from jobs.job_file import load_job
from jobs.planning import PlannedJob, plan_job, preview_job
from jobs.progress import NoProgress, ProgressSink, open_progress
from jobs.reading import OpenJob, open_job
from jobs.running import run_planned
from jobs.stats import JobStats, job_stats
from jobs.status import JobStatus, read_status
from jobs.verify import Verification, verify_job
from manifests.errors import (
    DamagedError,
    FingerprintError,
    InputError,
    JobFileError,
    ManifestError,
)
from manifests.job import JobSpec

__all__ = [
    "DamagedError",
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
    "ScoringError",
    "Verification",
    "job_stats",
    "load_job",
    "open_job",
    "open_progress",
    "plan_job",
    "preview_job",
    "read_status",
    "run_planned",
    "verify_job",
]
