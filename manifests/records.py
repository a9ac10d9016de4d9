"""What is written about work: commit records, failures, seals, presence and control.

The commit record of a shard is the commit: a data file that no record names does not exist for any
reader. A seal names the one record of every shard that counts; readers follow it, never a listing.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from manifests.documents import Document
from manifests.keys import ATTEMPT_PATTERN, check_key, data_key

Attempt = Annotated[str, Field(pattern=ATTEMPT_PATTERN)]
Count = Annotated[int, Field(ge=0)]
ERRORS_OF = "errors:"  # in front of an error class, names the counter of its error rows
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class CommitRecord(Document):
    """Everything a reader needs to find and check the output of a shard."""

    version: Literal[1] = 1
    shard: Count
    revision: Count = 0
    attempt: Attempt
    data_key: str
    rows: Count  # staged rows
    samples: Count  # rows of the data file
    ok: Count
    errors: Count
    bytes: Count
    sha256: Sha256
    row_ids_sha256: Sha256  # manifests.hashing.row_ids_digest
    schema_fingerprint: Sha256  # manifests.columns.schema_fingerprint
    plan_sha256: Sha256  # manifests.plan.plan_hash
    versions: dict[str, str]
    counters: dict[str, int]
    engine_s: Annotated[float, Field(ge=0)]
    worker: str
    committed: str  # ISO 8601, UTC

    @model_validator(mode="after")
    def _consistent(self) -> "CommitRecord":
        if self.data_key != data_key(self.shard, self.attempt):
            raise ValueError("data_key is not the one of its shard and attempt")
        if self.samples != self.ok + self.errors:
            raise ValueError("samples is not the sum of ok and errors")
        return self


class Failure(Document):
    """Why an attempt at a shard ended without a commit."""

    version: Literal[1] = 1
    shard: Count
    revision: Count = 0
    attempt: Attempt
    kind: Literal["rows", "infrastructure"]  # infrastructure never counts against rows
    error_class: str
    message: str  # never text of users
    is_death: bool = False  # a worker died under the rows, or they did not get on
    row: Count | None = None  # index in the shard of the row that had been announced
    worker: str
    time: str  # ISO 8601, UTC


class Announcement(Document):
    """A row is decoded alone now: if the worker ends before the next one, it ended under it."""

    version: Literal[1] = 1
    shard: Count
    attempt: Attempt
    row: Count  # index in the shard; past the last one: all got through
    epoch: str  # of the driver that gave the shard out
    worker: str
    time: str  # ISO 8601, UTC


class SealedShard(Document):
    """The record of a shard that counts, with what most readers want from it."""

    shard: Count
    record_key: str
    data_key: str
    sha256: Sha256
    samples: Count
    ok: Count
    errors: Count

    @model_validator(mode="after")
    def _keys_stay_inside(self) -> "SealedShard":
        check_key(self.record_key)
        check_key(self.data_key)
        return self


class Seal(Document):
    """The job is complete: exactly these records count."""

    version: Literal[1] = 1
    revision: Count = 0
    parent: Count | None = None
    plan_sha256: Sha256
    shards: tuple[SealedShard, ...]
    rows: Count
    samples: Count
    ok: Count
    errors: Count
    sealed: str  # ISO 8601, UTC; the latest `committed` of its records, so seals are reproducible


class Control(Document):
    """Somebody asks a driver to stop: the driver that has this epoch, and no later one."""

    version: Literal[1] = 1
    epoch: str
    request: Literal["drain", "cancel"]
    host: str  # of who asks
    pid: int
    time: str  # ISO 8601, UTC


class Presence(Document):
    """Progress of one driver, for people; no decision rests on it."""

    version: Literal[1] = 1
    epoch: str  # names the driver process
    host: str
    pid: int
    updated: str  # ISO 8601, UTC
    shards_before: Count = 0  # of those that are done, how many were when it began
    shards_done: Count
    shards_total: Count
    rows_done: Count
    samples_ok: Count
    samples_error: Count
    tokens: Count
    nfe: Count
    drafted: Count = 0
    accepted: Count = 0
    error_classes: dict[str, Count] = Field(default_factory=dict)
    rate_tokens_s: float
    eta_s: float | None = None  # as the expected costs of the missing shards say
    workers: Count
    gpu_s: Annotated[float, Field(ge=0)] = 0.0  # held by the run so far; no GPU counts as one
    finished: bool
