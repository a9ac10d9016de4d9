"""What can happen to a job. `now` is seconds on the driver's monotonic clock, always injected."""

from dataclasses import dataclass
from typing import Literal

Phase = Literal["assigned", "reading", "decoding", "publishing"]
Cause = Literal["death", "stuck", "infrastructure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time has passed. The first event of a job, which may be complete already."""

    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlaced:
    """The worker that was asked for has a place: its process is up on this node."""

    worker: str
    node: str
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJoined:
    """The worker can take shards."""

    worker: str
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where one attempt of a worker is."""

    shard: int
    phase: Phase
    num_rounds: int
    """Only grows while the attempt gets on."""
    fraction: float
    """Of its samples that are finished, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHeard:
    """A heartbeat came back."""

    worker: str
    running: tuple[Progress, ...]
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnded:
    """The worker is gone; `WorkerLost` follows when storage was asked for its last commits."""

    worker: str
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLost:
    """The worker is gone, or never came up, and storage was asked for what it committed.

    *death*: its process ended on a node that lives. *stuck*: it was ended since its rows did not
    get on. *infrastructure*: anything else; never held against a row.
    """

    worker: str
    cause: Cause
    committed: frozenset[int] = frozenset()
    """What it held and committed with its last breath, as found in storage."""
    announced: int | None = None
    """The row that it had announced last, if it decoded row by row and that row did not end."""
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCommitted:
    """The worker's attempt has the commit record of the shard, confirmed in storage."""

    worker: str
    shard: int
    attempt: str
    ok: int = 0
    errors: int = 0
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardLost:
    """The shard is committed, but the record that counts is another attempt's: `attempt`."""

    worker: str
    shard: int
    attempt: str
    ok: int = 0
    errors: int = 0
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardFailed:
    """The worker gave up its attempt and lives on."""

    worker: str
    shard: int
    error: str
    infrastructure: bool
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesCounted:
    """Samples of shards that were committed before this run, as their records say."""

    ok: int
    errors: int
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDraining:
    """The node will go, at `deadline` if that is known. Notices may be repeated, or lie."""

    node: str
    deadline: float | None
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRestored:
    """The notice about the node was withdrawn."""

    node: str
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequested:
    """Somebody wants the job to stop soon and be resumable."""

    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """Somebody wants the job to stop now."""

    now: float


Event = (
    Tick
    | WorkerPlaced
    | WorkerJoined
    | WorkerHeard
    | WorkerEnded
    | WorkerLost
    | ShardCommitted
    | ShardLost
    | ShardFailed
    | SamplesCounted
    | NodeDraining
    | NodeRestored
    | DrainRequested
    | CancelRequested
)
