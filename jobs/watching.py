"""Looking at a job again and again until nothing more is to be expected of it."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from jobs.reading import OpenJob
from jobs.status import JobStatus, read_status

INTERVAL_S = 2.0
ENDS = ("complete", "stopped")


def watch_status(
    job: OpenJob, *, interval_s: float, sleep: Callable[[float], None]
) -> Iterator[JobStatus]:
    """A status per look, the last one when the job is complete or nobody runs it any more.

    A job that is only planned is waited for: its driver may be about to start.
    """
    while True:
        status = read_status(job, now=datetime.now(UTC))
        yield status
        if status.state in ENDS:
            return
        sleep(interval_s)
