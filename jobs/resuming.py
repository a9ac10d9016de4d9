"""What `run` and `submit` are given: a job file, or the place of a job that is planned."""

import json
from collections.abc import Sequence
from pathlib import Path

from jobs.errors import JobError
from jobs.job_file import job_from_values, load_job
from jobs.models import inspect_models
from jobs.planning import PlannedJob, plan_job
from jobs.reading import open_job
from manifests.fingerprints import require_same_fields
from manifests.job import JobSpec
from manifests.keys import plan_key


def planned_and_job(reference: str, overrides: Sequence[str] = ()) -> tuple[PlannedJob, JobSpec]:
    """The planned job that `reference` names, and the job as this run has it.

    A job file is planned unless it is already. A job's directory or URI needs neither the file nor
    the input any more: the plan has everything, and `overrides` may change what is operational.
    """
    if is_job_uri(reference):
        return resume_job(reference, overrides)
    job = load_job(Path(reference), overrides)
    return plan_job(job), job


def is_job_uri(reference: str) -> bool:
    """Whether a planned job is named, rather than a job file."""
    return "://" in reference or (Path(reference).expanduser() / plan_key()).is_file()


def resume_job(uri: str, overrides: Sequence[str] = ()) -> tuple[PlannedJob, JobSpec]:
    """A planned job with this run's overrides; `FingerprintError` if they change its output."""
    stored = open_job(uri)
    plan = stored.plan
    values = json.loads(plan.job.model_dump_json(exclude_defaults=True))
    job = job_from_values(values, overrides, source=f"the plan in {uri}")
    if job.output.uri != plan.job.output.uri:
        raise JobError(f"{uri} is where this job's output is; leave output.uri as it is")
    warnings: tuple[str, ...] = ()
    drafter_files = plan.drafter_files
    if job.drafter != plan.job.drafter:
        models = inspect_models(job)
        drafter_files, warnings = models.drafter, models.warnings
    require_same_fields(
        plan,
        job=job,
        input_files=plan.input,
        target_files=plan.target_files,
        drafter_files=drafter_files,
    )
    planned = PlannedJob(
        store=stored.store,
        plan=plan,
        created=False,
        warnings=warnings,
        drafter_files=tuple(drafter_files),
    )
    return planned, job
