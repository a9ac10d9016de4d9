"""What the pool tells the loop. Notices are hearsay: the loop reads storage before it acts."""

from dataclasses import dataclass

from schedulers.events import Cause
from workers.actor import Heartbeat
from workers.attempt import ShardOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The worker's process is up, on this node."""

    worker: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The worker can take shards."""

    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A heartbeat came back."""

    worker: str
    heartbeat: Heartbeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The worker must not or cannot do this job; it has been ended."""

    worker: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The worker died, or does not answer as it should, and has been ended."""

    worker: str
    cause: Cause
    message: str
    node: str | None = None
    """Where it was, if it ever had a place."""
    left_records: bool = False
    """It lived long enough to leave failure records itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """An attempt has come to its end."""

    worker: str
    outcome: ShardOutcome


Notice = Placed | Joined | Heard | Refused | Gone | Reported
