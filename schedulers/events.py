"""What can happen to a job. `now` is seconds on the driver's monotonic clock, always injected."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJoined:
    """An actor is up and can take shards."""

    worker: str
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLost:
    """An actor is gone, or never came up. `infrastructure` is not held against its shards.

    `committed`: what it held and committed with its last breath, as found in storage.
    """

    worker: str
    reason: Literal["death", "infrastructure"]
    committed: frozenset[int] = frozenset()
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCommitted:
    """The worker's attempt has the commit record of the shard, confirmed in storage."""

    worker: str
    shard: int
    attempt: str
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardLost:
    """The shard is committed, but the record that counts is another attempt's: `attempt`."""

    worker: str
    shard: int
    attempt: str
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
class DrainRequested:
    """Somebody wants the job to stop soon and be resumable."""

    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time has passed; also the first event of a job that may be complete already."""

    now: float


Event = WorkerJoined | WorkerLost | ShardCommitted | ShardLost | ShardFailed | DrainRequested | Tick
