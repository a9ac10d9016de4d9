"""What the driver is told to do. Instructions are executed in order; none asks for an answer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign:
    """Give the shard to the worker."""

    worker: str
    shard: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceWorker:
    """Start another actor, under another name, in place of one that is gone."""

    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Stop the actor: nothing is left for it. The scheduler has forgotten it."""

    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """The shard has failed for good in this run; the rest goes on."""

    shard: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """Every shard has a commit record: write the seal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """The drain is over: stop, resumable. Last instruction of a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Nothing is left to do. Last instruction of a job."""


Instruction = Assign | ReplaceWorker | Release | GiveUp | Seal | Drained | Finished
