"""What the pool tells the loop. Notices are hearsay: the loop reads storage before it acts."""

from dataclasses import dataclass
from typing import Literal

from workers.attempt import Attempt, ShardOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The worker can take shards."""

    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The worker must not or cannot do this job; it has been ended."""

    worker: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The worker died or was ended; `running` is what it was last seen doing."""

    worker: str
    reason: Literal["death", "infrastructure"]
    message: str
    running: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """An attempt has come to its end."""

    worker: str
    outcome: ShardOutcome


Notice = Joined | Refused | Gone | Reported
