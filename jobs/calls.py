"""The verbs as functions: `spotbatch.plan`, `run`, `submit`, `extend` and `status`.

A job is named as on the command line: by a job file, or by the place of a planned job; settings are
given like ``--set``, as ``{"cluster.workers": 4}``.
"""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.driver.result import RunResult
from jobs.extending import Extended, extend_job
from jobs.planning import PlannedJob
from jobs.progress import ProgressSink
from jobs.reading import open_job
from jobs.resuming import planned_and_job, stored_and_job
from jobs.status import JobStatus, read_status
from jobs.submitting import Submission


def plan(job: str | Path, settings: Mapping[str, Any] | None = None) -> PlannedJob:
    """Plan a job, or find its plan; `FingerprintError` if the place holds another job."""
    return planned_and_job(str(job), overrides_of(settings), environment=os.environ)[0]


def run(
    job: str | Path,
    settings: Mapping[str, Any] | None = None,
    *,
    progress: ProgressSink | None = None,
    time_s: float | None = None,
) -> RunResult:
    """Plan a job unless it is planned, and run it until it is complete, drained or failed.

    Call it from the main thread: SIGINT and SIGTERM ask for a drain while it runs.

    Args:
        job: a job file, or the place of a planned job.
        settings: overrides, as ``{"cluster.workers": 4}``.
        progress: where the run reports to; nowhere without it. `open_progress()` is a terminal's.
        time_s: seconds after which the run drains.
    """
    from jobs.running import run_planned

    planned, spec = planned_and_job(str(job), overrides_of(settings), environment=os.environ)
    return run_planned(planned, spec, progress=progress, time_s=time_s)


def submit(
    job: str | Path, settings: Mapping[str, Any] | None = None, *, address: str | None = None
) -> Submission | None:
    """Run a job on a Ray cluster; None if it is complete. A driver that runs is attached to."""
    from jobs.submission import is_complete, submit_planned
    from jobs.submitting_client import connect

    planned, spec = planned_and_job(str(job), overrides_of(settings), environment=os.environ)
    if is_complete(planned):
        return None
    return submit_planned(planned, spec, server=connect(address))


def extend(
    job: str | Path, settings: Mapping[str, Any] | None = None, *, dry_run: bool = False
) -> Extended:
    """Add the rows that were appended to the input of a complete job, for `run` to decode.

    Raises `InputError` if rows that are planned have changed, `RevisionError` where the job is not
    complete. With ``dry_run`` nothing is written.
    """
    stored, spec = stored_and_job(str(job), overrides_of(settings), environment=os.environ)
    return extend_job(stored, spec, dry_run=dry_run)


def status(uri: str | Path) -> JobStatus:
    """Where a job stands, from its place alone."""
    return read_status(open_job(str(uri)), now=datetime.now(UTC))


def overrides_of(settings: Mapping[str, Any] | None) -> list[str]:
    """Settings as the command line has them."""
    return [f"{name}={json.dumps(value)}" for name, value in (settings or {}).items()]
