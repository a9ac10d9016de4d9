"""How a run of a job ended."""

from dataclasses import dataclass, field
from typing import Literal

from manifests.records import Seal

Outcome = Literal[
    "complete", "sealed", "failed", "errors", "crash_loop", "drained", "starved", "cancelled"
]
EXIT_CODES: dict[Outcome, int] = {
    "complete": 0,
    "sealed": 0,
    "failed": 1,
    "errors": 1,
    "crash_loop": 1,
    "drained": 3,
    "starved": 3,
    "cancelled": 130,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What `run_job` did.

    *complete*: the job was finished before, and nothing was started. *sealed*: this run finished
    it. *failed*: shards were given up; another run tries them again. *errors*: too many samples
    were errors, and the run stopped early. *crash_loop*: drivers before this one died without any
    progress, and nothing was started. *drained*, *cancelled*: somebody asked for the end; another
    run goes on. *starved*: no worker got a place; another run goes on when there is one.
    """

    outcome: Outcome
    num_shards: int = 0
    """Shards of what the job had open."""
    num_committed: int = 0
    """Shards with a commit record, whoever wrote it."""
    num_before: int = 0
    """Of these, how many had one before this run."""
    seal: Seal | None = None
    given_up: dict[int, str] = field(default_factory=dict)
    """Reasons by shard."""
    message: str | None = None
    """Why the run ended, where the outcome does not say enough."""

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return EXIT_CODES[self.outcome]
