"""The plan: what a job is, decided once and never changed.

A plan is created by whoever comes first. Later runs read it; a run whose semantic fields differ is
refused with the names of these fields, since its rows would not belong to the same output.
"""

from typing import Annotated, Literal, Protocol

from pydantic import Field, model_validator

from manifests.documents import Document, encode, read_document
from manifests.errors import RefusedError
from manifests.fingerprints import FileIdentity, require_same_fields
from manifests.hashing import canonical_json, hash64, sha256_hex
from manifests.job import JobSpec
from manifests.keys import plan_key
from manifests.store.base import Store

Count = Annotated[int, Field(ge=0)]


class ShardPlan(Document):
    """One line of the shard table."""

    shard: Count
    rows: Annotated[int, Field(ge=1)]
    seed: Annotated[int, Field(ge=0, lt=2**64)]
    expected_cost: float
    first_row: Count  # global input row index of its first row
    row_group: Count  # of `part`
    part: str  # key of a staged input file

    @property
    def num_before(self) -> int:
        """Rows that the noise of this shard counts in front of its own."""
        return 0

    def index_of(self, row: int) -> int:
        """A row's index in the shard, of its index in the whole input."""
        return row - self.first_row


class Plan(Document):
    """The whole plan."""

    version: Literal[1] = 1
    job_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    created: str  # ISO 8601, UTC
    job: JobSpec  # resolved: absolute paths
    fingerprint: str
    input: tuple[FileIdentity, ...]
    staged: tuple[FileIdentity, ...]  # path = key
    rows_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # `RowsDigest` of all rows
    target_files: tuple[FileIdentity, ...]
    target_revision: str | None = None  # commit of the checkpoint's repository, where it is known
    drafter_files: tuple[FileIdentity, ...]
    shards: tuple[ShardPlan, ...]
    versions: dict[str, str]
    rows: Count

    @model_validator(mode="after")
    def _shards_cover_rows(self) -> "Plan":
        staged = {identity.path for identity in self.staged}
        next_row = 0
        for index, shard in enumerate(self.shards):
            if (shard.shard, shard.first_row) != (index, next_row):
                raise ValueError(f"shard {index} of the shard table does not follow the one before")
            if shard.part not in staged:
                raise ValueError(f"shard {index}: {shard.part} is not among the staged files")
            next_row += shard.rows
        if next_row != self.rows:
            raise ValueError(f"the shard table has {next_row} rows, the plan {self.rows}")
        return self

    @property
    def as_created(self) -> "Plan":
        """The plan as it is stored, without rows that were appended since."""
        return self

    @property
    def extended_in(self) -> tuple[int, ...]:
        """The revisions that appended rows to it."""
        return ()


def new_job_id(*, fingerprint: str, output_uri: str, created: str) -> str:
    """16 hex digits that name one job."""
    return f"{hash64('job', fingerprint, output_uri, created):016x}"


def shard_seed(job_seed: int, shard: int) -> int:
    """The seed of a shard, recorded in the plan."""
    return hash64("shard", job_seed, shard)


class SeededRow(Protocol):
    """The part of a staged row that its noise depends on."""

    @property
    def id(self) -> str: ...

    @property
    def seed(self) -> int | None: ...


def sample_key(
    plan: Plan, shard_plan: ShardPlan, row_index_in_shard: int, row: SeededRow, sample: int
) -> int:
    """The 64-bit key that fixes all noise of a sample.

    The row index is the one in the planned shard; retries and duplicates keep it, and rows that
    were appended count on from where a shard was short. A row with a seed of its own has the key
    that it would have in a job with this seed and row scope.
    """
    if row.seed is not None:
        return hash64("row", row.seed, row.id, sample)
    if plan.job.seed.scope == "row":
        return hash64("row", plan.job.seed.value, row.id, sample)
    index = shard_plan.num_before + row_index_in_shard
    return hash64("sample", shard_plan.seed, index, sample)


def plan_hash(plan: Plan) -> str:
    """SHA-256 of the stored plan's canonical JSON; commit records and data files carry it."""
    return sha256_hex(canonical_json(plan.as_created))


def read_plan(store: Store) -> Plan:
    """The plan of a job as it was created; `MissingError` where there is none."""
    return read_document(store, Plan, plan_key())


def write_plan(store: Store, plan: Plan) -> Plan:
    """Create the plan, or read back the one that counts; `FingerprintError` if they differ.

    The caller goes on with the returned plan. `UnknownOutcomeError` passes through: run again.
    """
    try:
        store.put_if_absent(plan_key(), encode(plan))
    except RefusedError:
        stored = read_plan(store)
        require_same_fields(
            stored,
            job=plan.job,
            input_files=plan.input,
            target_files=plan.target_files,
            drafter_files=plan.drafter_files,
        )
        return stored
    return plan
