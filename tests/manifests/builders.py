"""Whole small jobs in a folder, made the way planning and workers make them, without a model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from manifests import columns
from manifests.documents import encode
from manifests.fingerprints import FileIdentity, fingerprint
from manifests.hashing import row_ids_digest, sha256_file
from manifests.job import JobSpec
from manifests.keys import commit_key, data_key, staged_key
from manifests.plan import (
    Plan,
    ShardPlan,
    plan_hash,
    sample_key,
    shard_seed,
    write_plan,
)
from manifests.protocol import CommitOutcome, commit_shard, create
from manifests.records import CommitRecord
from manifests.staged import STAGED_SCHEMA, STAGED_WRITE_OPTIONS, StagedRow, staged_table
from manifests.store import LocalStore, Store

SHA = "0" * 64
CREATED = "2026-01-01T00:00:00+00:00"
INPUT_FILES = (FileIdentity(path="/data/prompts.jsonl", bytes=10, sha256="a" * 64),)
TARGET_FILES = (FileIdentity(path="/model/model.safetensors", bytes=20, sha256="b" * 64),)


def job_spec(**changes: Any) -> JobSpec:
    """A job; keyword arguments replace whole groups."""
    groups = {
        "input": {"uri": "/data/prompts.jsonl"},
        "target": {"path": "/model"},
        "output": {"uri": "/out/job"},
    }
    return JobSpec.model_validate(groups | changes)


def identity(path: Path, *, key: str) -> FileIdentity:
    """The identity of a file, under a key."""
    return FileIdentity(path=key, bytes=path.stat().st_size, sha256=sha256_file(path))


@dataclass(kw_only=True)
class StoredJob:
    """A planned job in a local store, and what its shards hold."""

    store: Store
    plan: Plan
    rows: list[list[StagedRow]]  # by shard
    scratch: Path

    def path(self, key: str) -> Path:
        """The file behind a key, to be damaged."""
        return Path(self.store.uri) / key

    def attempt_file(
        self,
        shard: int,
        *,
        attempt: str,
        values: list[dict[str, Any]] | None = None,
        **options: Any,
    ) -> Path:
        """A data file as a worker leaves it; `options` change how it is written."""
        values = self.output_values(shard, attempt=attempt) if values is None else values
        schema = options.pop("schema", columns.output_schema(self.plan.job.output.trace))
        revision = options.pop("revision", 0)
        metadata = options.pop("metadata", self.metadata(shard, attempt=attempt, revision=revision))
        path = self.scratch / f"{shard}-{attempt}.parquet"
        options = {"compression": "zstd", "write_page_checksum": True} | options
        with pq.ParquetWriter(path, schema, **options) as writer:
            writer.write_table(pa.Table.from_pylist(values, schema=schema))
            writer.add_key_value_metadata(metadata)
        return path

    def metadata(self, shard: int, *, attempt: str, revision: int = 0) -> dict[str, str]:
        """File metadata that verification looks at."""
        return {
            columns.METADATA_JOB: self.plan.job_id,
            columns.METADATA_SHARD: str(shard),
            columns.METADATA_REVISION: str(revision),
            columns.METADATA_ATTEMPT: attempt,
            columns.METADATA_PLAN_SHA256: plan_hash(self.plan),
        }

    def output_values(self, shard: int, *, attempt: str) -> list[dict[str, Any]]:
        """Output rows: an error where planning found one, else two tokens."""
        return [
            self._output_value(shard, row=row, sample=sample, attempt=attempt)
            for row in range(len(self.rows[shard]))
            for sample in range(self.plan.job.sampling.n)
        ]

    def _output_value(self, shard: int, *, row: int, sample: int, attempt: str) -> dict[str, Any]:
        staged = self.rows[shard][row]
        schema = columns.output_schema(self.plan.job.output.trace)
        zeros: dict[str, Any] = {entry.name: 0 for entry in schema if not entry.nullable}
        place = {
            "id": staged.id,
            "sample": sample,
            "shard": shard,
            "row": row,
            "attempt": attempt,
            "seed": sample_key(self.plan, self.plan.shards[shard], row, staged, sample),
            "carried": staged.carried,
        }
        if staged.error_class is not None:
            return zeros | place | {"error_class": staged.error_class, "error_message": "no prompt"}
        output = {"text": "ab", "token_ids": [5, 6], "tokens": 2, "finish_reason": "stop"}
        lists = {"commit_step": [0, 1], "log_probability": [0.0, -1.0], "confidence": [1.0, 0.5]}
        trajectory = {
            "commit_position": [9, 8, 10],
            "commit_token": [6, 5, 2],
            "commit_transition": [0, 1, 2],
        }
        return zeros | place | output | lists | trajectory

    def record(self, shard: int, *, attempt: str, path: Path, **changes: Any) -> CommitRecord:
        """The commit record that tells the truth about a file, but for some changes."""
        table = pq.read_table(path)
        errors = table.num_rows - table["error_class"].null_count
        pairs = zip(table["id"].to_pylist(), table["sample"].to_pylist(), strict=True)
        fields: dict[str, Any] = {
            "shard": shard,
            "attempt": attempt,
            "data_key": data_key(shard, attempt),
            "rows": len(self.rows[shard]),
            "samples": table.num_rows,
            "ok": table.num_rows - errors,
            "errors": errors,
            "bytes": path.stat().st_size,
            "sha256": sha256_file(path),
            "row_ids_sha256": row_ids_digest(pairs),
            "schema_fingerprint": columns.schema_fingerprint(
                columns.output_schema(self.plan.job.output.trace)
            ),
            "plan_sha256": plan_hash(self.plan),
            "versions": {"spotbatch": "0"},
            "counters": {"forwards": 3},
            "engine_s": 0.5,
            "worker": "w",
            "committed": f"2026-01-01T00:00:0{shard}+00:00",
        }
        return CommitRecord(**(fields | changes))

    def commit(self, shard: int, *, attempt: str | None = None) -> CommitOutcome:
        """Decode and commit a shard, faithfully."""
        attempt = attempt or f"{shard:016x}"
        path = self.attempt_file(shard, attempt=attempt)
        record = self.record(shard, attempt=attempt, path=path)
        return commit_shard(self.store, record=record, data_path=path)

    def publish(
        self, shard: int, path: Path, *, attempt: str, record: CommitRecord | None = None
    ) -> CommitRecord:
        """Put a file and a record as they are: what a faulty writer might do."""
        record = record or self.record(shard, attempt=attempt, path=path)
        self.store.put_file_if_absent(data_key(shard, attempt), path)
        self.store.put_if_absent(commit_key(shard), encode(record))
        return record


def staged_rows(counts: Sequence[int]) -> list[list[StagedRow]]:
    """Rows by shard; the last row of the last shard has trouble that planning found."""
    shards = []
    first = 0
    for count in counts:
        shards.append([_staged_row(first + index) for index in range(count)])
        first += count
    bad = shards[-1][-1]
    shards[-1][-1] = StagedRow(
        row=bad.row, id=bad.id, error_class="EmptyPrompt", error_message="no prompt"
    )
    return shards


def _staged_row(row: int) -> StagedRow:
    return StagedRow(row=row, id=f"id-{row}", prompt=f"prompt {row}", carried='{"family":"a"}')


def write_staged(path: Path, shards: Iterable[Sequence[StagedRow]], **options: Any) -> None:
    """A staged input file with one row group per shard."""
    with pq.ParquetWriter(path, STAGED_SCHEMA, **(STAGED_WRITE_OPTIONS | options)) as writer:
        for rows in shards:
            writer.write_table(staged_table(rows), row_group_size=len(rows))


def make_job(
    folder: Path, *, counts: Sequence[int] = (3, 2), store: Store | None = None, **changes: Any
) -> StoredJob:
    """Plan a job with shards of these sizes into `folder`, or find it planned in a store."""
    scratch = folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    store = store or LocalStore(folder / "job")
    job = job_spec(**({"sampling": {"n": 2}} | changes))
    rows = staged_rows(counts)
    write_staged(scratch / "part.parquet", rows)
    path = scratch / "part.parquet"
    key = staged_key(0, 0, sha256=sha256_file(path))
    create(partial(store.put_file_if_absent, key, path))
    plan = plan_of(job, rows, staged=(identity(path, key=key),))
    return StoredJob(store=store, plan=write_plan(store, plan), rows=rows, scratch=scratch)


def plan_of(
    job: JobSpec, rows: Sequence[Sequence[StagedRow]], *, staged: tuple[FileIdentity, ...]
) -> Plan:
    """The plan over staged rows."""
    shards = []
    first = 0
    for index, shard_rows in enumerate(rows):
        shards.append(
            ShardPlan(
                shard=index,
                rows=len(shard_rows),
                seed=shard_seed(job.seed.value, index),
                expected_cost=float(len(shard_rows)),
                first_row=first,
                row_group=index,
                part=staged[0].path,
            )
        )
        first += len(shard_rows)
    return Plan(
        job_id="0123456789abcdef",
        created=CREATED,
        job=job,
        fingerprint=fingerprint(job, input_files=INPUT_FILES, target_files=TARGET_FILES),
        input=INPUT_FILES,
        staged=staged,
        rows_sha256=SHA,
        target_files=TARGET_FILES,
        drafter_files=(),
        shards=tuple(shards),
        versions={"spotbatch": "0"},
        rows=first,
    )
