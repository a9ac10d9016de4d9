"""Planning: everything about a job that is decided once, written down before any work starts.

Order: look at all that can be wrong, stage the input to local disk, publish the staged files, then
create the plan. Until the plan exists there is no job; staged files are named by their bytes, so
planners of different inputs do not meet. From then on the plan counts, and a run that differs from
it is refused.
"""

import importlib.metadata
import platform
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jobs.inputs.files import find_files
from jobs.inputs.opening import identify
from jobs.models import ModelFiles, inspect_models
from jobs.scoring import check_scorer
from jobs.staging import StagedInput, publish_staged, stage_input
from manifests.errors import MissingError
from manifests.fingerprints import FileIdentity, fingerprint, require_same_fields
from manifests.job import JobSpec
from manifests.open_revision import latest_plan
from manifests.plan import Plan, new_job_id, read_plan, write_plan
from manifests.store import Store, open_store

_DISTRIBUTIONS = ("spotbatch", "torch", "transformers", "tokenizers", "ray", "pyarrow", "numpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """A job that can be run: where it is, its plan, and whether this call made it."""

    store: Store
    plan: Plan
    created: bool
    warnings: tuple[str, ...]
    drafter_files: tuple[FileIdentity, ...]
    """The drafter as it is now: where drafts decide nothing, it may have changed since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a plan would say; nothing is stored."""

    staged: StagedInput
    models: ModelFiles


def plan_job(job: JobSpec) -> PlannedJob:
    """Create the plan of `job`, or find the one that is there and check that `job` belongs to it.

    Raises `InputError`, `JobFileError` and `ScoringError` before anything is stored, and
    `FingerprintError` if the output holds another job.
    """
    checked = _check(job)
    if checked.plan is not None:
        plan, created = checked.plan, False
    else:
        plan, created = _create(job, checked)
    return PlannedJob(
        store=checked.store,
        plan=plan,
        created=created,
        warnings=checked.models.warnings,
        drafter_files=checked.models.drafter,
    )


def preview_job(job: JobSpec) -> Preview:
    """Check all that `plan_job` checks and count what it would plan; stores nothing."""
    checked = _check(job)
    with tempfile.TemporaryDirectory(prefix="spotbatch-plan-") as folder:
        staged = stage_input(job, Path(folder))
    return Preview(staged=staged, models=checked.models)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """What was looked at before the input is read row by row."""

    store: Store
    models: ModelFiles
    input_files: tuple[FileIdentity, ...]
    plan: Plan | None
    """The plan that is there, if there is one."""


def _check(job: JobSpec) -> _Checked:
    store = open_store(job.output.uri, job.storage)
    files = find_files(job.input, job.storage)
    models = inspect_models(job)
    if job.stats.scorer is not None:
        check_scorer(job.stats.scorer)
    input_files = tuple(identify(file.uri, job.storage) for file in files)
    plan = _stored_plan(store)
    if plan is not None:
        require_same_fields(
            plan,
            job=job,
            input_files=input_files,
            target_files=models.target,
            drafter_files=models.drafter,
        )
    return _Checked(store=store, models=models, input_files=input_files, plan=plan)


def _stored_plan(store: Store) -> Plan | None:
    try:
        return latest_plan(store, read_plan(store))
    except MissingError:
        return None


def _create(job: JobSpec, checked: _Checked) -> tuple[Plan, bool]:
    store = checked.store
    with tempfile.TemporaryDirectory(prefix="spotbatch-plan-") as folder:
        staged = stage_input(job, Path(folder))
        plan = _make_plan(job, staged=staged, checked=checked)
        store.probe()
        publish_staged(store, staged.parts)
        stored = write_plan(store, plan)
    return stored, stored == plan


def _make_plan(job: JobSpec, *, staged: StagedInput, checked: _Checked) -> Plan:
    models, input_files = checked.models, checked.input_files
    created = datetime.now(UTC).isoformat(timespec="seconds")
    digest = fingerprint(
        job,
        input_files=input_files,
        target_files=models.target,
        drafter_files=models.drafter,
    )
    return Plan(
        job_id=new_job_id(fingerprint=digest, output_uri=job.output.uri, created=created),
        created=created,
        job=job,
        fingerprint=digest,
        input=input_files,
        staged=tuple(part.identity for part in staged.parts),
        rows_sha256=staged.digest.hexdigest(),
        target_files=models.target,
        target_revision=models.target_revision,
        drafter_files=models.drafter,
        shards=tuple(staged.shards),
        versions=_versions(),
        rows=staged.rows,
    )


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions
