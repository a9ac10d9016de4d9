"""Errors of the jobs package; those of job files and inputs are in `manifests.errors`.

::

    JobError (ValueError)
    ├── ScoringError   the scorer cannot be loaded, or gives something other than a score
    └── NoJobError     there is no job at the place that a command was given
"""


class JobError(ValueError):
    """Base of what a person can mend; the message is one sentence."""


class ScoringError(JobError):
    """The scorer cannot be used; the message names it."""


class NoJobError(JobError):
    """No plan is stored there."""
