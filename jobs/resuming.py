"""What `run`, `submit` and `extend` are given: a job file, or the place of a planned job."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from jobs.errors import JobError
from jobs.job_file import job_from_values, load_job
from jobs.models import inspect_models
from jobs.planning import PlannedJob, plan_job
from jobs.reading import OpenJob, open_job, open_job_in
from manifests.fingerprints import require_same_fields
from manifests.job import JobSpec
from manifests.keys import plan_key
from manifests.store import open_store


def planned_and_job(
    reference: str,
    overrides: Sequence[str] = (),
    *,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> tuple[PlannedJob, JobSpec]:
    """The planned job that `reference` names, and the job as this run has it.

    A job file is planned unless it is already. A job's directory or URI needs neither the file nor
    the input any more: the plan has everything, and `overrides` may change what is operational.
    """
    if is_job_uri(reference):
        return resume_job(reference, overrides, environment=environment)
    job = load_job(Path(reference), overrides, environment=environment)
    return plan_job(job), job


def is_job_uri(reference: str) -> bool:
    """Whether a planned job is named, rather than a job file."""
    return "://" in reference or (Path(reference).expanduser() / plan_key()).is_file()


def resume_job(
    uri: str,
    overrides: Sequence[str] = (),
    *,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> tuple[PlannedJob, JobSpec]:
    """A planned job with this run's overrides; `FingerprintError` if they change its output."""
    stored = open_job(uri)
    plan = stored.plan
    job = _job_of_plan(stored, overrides, uri=uri, environment=environment)
    planned = planned_again(stored, job)
    require_same_fields(
        plan,
        job=job,
        input_files=plan.input,
        target_files=plan.target_files,
        drafter_files=planned.drafter_files,
    )
    return planned, job


def stored_and_job(
    reference: str,
    overrides: Sequence[str] = (),
    *,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> tuple[OpenJob, JobSpec]:
    """The stored job that `reference` names, and the job as it is asked for now.

    Nothing is planned and nothing compared; raises `NoJobError` where there is no plan.
    """
    if is_job_uri(reference):
        stored = open_job(reference)
        return stored, _job_of_plan(stored, overrides, uri=reference, environment=environment)
    job = load_job(Path(reference), overrides, environment=environment)
    return open_job_in(open_store(job.output.uri, job.storage), uri=job.output.uri), job


def _job_of_plan(
    stored: OpenJob, overrides: Sequence[str], *, uri: str, environment: Mapping[str, str]
) -> JobSpec:
    values = json.loads(stored.plan.job.model_dump_json(exclude_defaults=True))
    source = f"the plan in {uri}"
    job = job_from_values(values, overrides, source=source, environment=environment)
    if job.output.uri != stored.plan.job.output.uri:
        raise JobError(f"{uri} is where this job's output is; leave output.uri as it is")
    return job


def planned_again(stored: OpenJob, job: JobSpec) -> PlannedJob:
    """A stored job, about to be run as `job`; its drafter may be another one by now."""
    plan = stored.plan
    warnings: tuple[str, ...] = ()
    drafter_files = plan.drafter_files
    if job.drafter != plan.job.drafter:
        models = inspect_models(job)
        drafter_files, warnings = models.drafter, models.warnings
    return PlannedJob(
        store=stored.store,
        plan=plan,
        created=False,
        warnings=warnings,
        drafter_files=drafter_files,
    )
