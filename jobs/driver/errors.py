"""Errors of the driver.

::

    JobError
    └── DriverError          the job cannot run here; the message says what to mend
        ├── RefusedWorkerError   workers would not do the work that the driver planned
        └── RivalDriverError     another driver runs the job
"""

from jobs.errors import JobError


class DriverError(JobError):
    """The job cannot run in this place."""


class RefusedWorkerError(DriverError):
    """A worker has other code, other numerics or cannot load the models; one sentence."""


class RivalDriverError(DriverError):
    """Another driver runs the job; nothing was started."""
