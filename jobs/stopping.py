"""Asking the drivers of a job to stop, through the job's own storage."""

from jobs.errors import JobError
from jobs.reading import open_job
from manifests.control import Request, ask_drivers


def ask(uri: str, request: Request) -> list[str]:
    """Ask every driver that has not said goodbye; one line for each.

    Raises `NoJobError`, or `JobError` where no driver runs.
    """
    job = open_job(uri)
    epochs = ask_drivers(job.store, request)
    if not epochs:
        raise JobError(
            f"{uri}: no driver of this job runs, so there is nothing to {request}; "
            "`spotbatch status` says where it stands"
        )
    return [f"asked driver {epoch} to {request}" for epoch in epochs]
