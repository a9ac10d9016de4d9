"""Errors of the schedulers package.

::

    SchedulerError (RuntimeError)   an event that cannot have happened, with the history before it
"""

from collections.abc import Iterable

from schedulers.history import Step

_SHOWN = 20


class SchedulerError(RuntimeError):
    """An event contradicts what happened before: a mistake of the driver, never of a user."""

    def __init__(self, message: str, *, history: Iterable[Step]) -> None:
        self.history = tuple(history)
        recent = "".join(f"\n  {entry}" for entry in self.history[-_SHOWN:])
        super().__init__(f"{message}; what happened before:{recent or ' nothing'}")
