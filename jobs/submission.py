"""From a planned job to its driver on a cluster."""

from jobs.planning import PlannedJob
from jobs.submitting import JobServer, Submission, changed_settings, entrypoint_of, submit
from manifests.job import JobSpec
from manifests.open_revision import open_revision


def is_complete(planned: PlannedJob) -> bool:
    """Whether there is nothing to decode: everything is sealed and no revision is open."""
    return open_revision(planned.store, planned.plan) is None


def entrypoint_of_run(planned: PlannedJob, job: JobSpec) -> str:
    """The command that the driver is started with."""
    return entrypoint_of(planned.store.uri, settings=changed_settings(planned.plan.job, job))


def submit_planned(planned: PlannedJob, job: JobSpec, *, server: JobServer) -> Submission:
    """Start the job's driver, or attach to the one that runs."""
    return submit(server, job_id=planned.plan.job_id, entrypoint=entrypoint_of_run(planned, job))
