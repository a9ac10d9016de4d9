"""The scheduler's limits, as a job's settings say them."""

from manifests.job import JobSpec
from schedulers.limits import Limits


def limits_of(job: JobSpec, *, capacity: int) -> Limits:
    """The limits of one run of `job`; a worker holds up to `capacity` shards."""
    retry = job.retry
    return Limits(
        attempts=retry.attempts,
        infrastructure_attempts=retry.infrastructure_attempts,
        capacity=capacity,
        start_timeout_s=job.cluster.start_timeout_s,
        starting_s=retry.starting_s,
        lease_s=retry.lease_s,
        decoding_s=retry.decoding_s,
        publishing_s=retry.publishing_s,
        drain_s=retry.drain_s,
        max_error_fraction=retry.max_error_fraction,
    )
