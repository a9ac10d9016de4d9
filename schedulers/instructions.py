"""What the driver is told to do. Instructions are executed in order; none asks for an answer."""

from dataclasses import dataclass

from schedulers.events import Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWorker:
    """Ask for a worker of this name."""

    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign:
    """Give the shard to the worker."""

    worker: str
    shard: int
    row_by_row: bool = False
    """Decode one row at a time, and announce each in storage before it starts."""
    convicted: tuple[int, ...] = ()
    """Rows, by index in the shard, that become errors without being decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndWorker:
    """End the worker's process, look in storage for its last commits, and report it as lost."""

    worker: str
    cause: Cause
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Stop the worker: nothing is left for it. The scheduler has forgotten it."""

    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """Tell people: the worker gets no more shards, and keeps its place so that no other gets it."""

    worker: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Convict:
    """Tell people: this row killed its workers, and becomes an error."""

    shard: int
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """The shard has failed for good in this run; the rest goes on."""

    shard: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopForErrors:
    """Too many samples are errors: the job drains. Tell people."""

    errors: int
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """Every shard has a commit record: write the seal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Starved:
    """No worker has had a place for too long. Last instruction of a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """Stop at once. Last instruction of a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """The drain is over: stop, resumable. Last instruction of a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Nothing is left to do. Last instruction of a job."""


Instruction = (
    StartWorker
    | Assign
    | EndWorker
    | Release
    | Park
    | Convict
    | GiveUp
    | StopForErrors
    | Seal
    | Starved
    | Cancelled
    | Drained
    | Finished
)
