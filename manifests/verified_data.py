"""A data file against its commit record, the plan and the staged rows.

Order: length, SHA-256, footer and schema, then rows, ids and counts. What follows on a failed check
is left out, since it would only repeat it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from manifests import columns
from manifests.hashing import sha256_file
from manifests.plan import Plan
from manifests.records import CommitRecord
from manifests.staged import StagedRow
from manifests.store.base import Store
from manifests.verified_rows import Copied, row_problems


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """What a data file has to hold."""

    store: Store
    plan: Plan
    plan_sha256: str
    schema: pa.Schema
    record: CommitRecord
    rows: list[StagedRow] | None
    """The shard's input; None if that cannot be read, and then rows are not looked at."""
    copied: Copied | None
    """Rows that the revision did not decode."""

    def problems(self) -> Iterator[str]:
        """Everything that is wrong; raises what reading damaged bytes raises."""
        record = self.record
        with self.store.open_local(record.data_key) as path:
            wrong = list(content_problems(path, num_bytes=record.bytes, sha256=record.sha256))
            yield from wrong
            if not wrong:
                yield from self._parquet_problems(path)

    def _parquet_problems(self, path: Path) -> Iterator[str]:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if not file.schema_arrow.equals(self.schema):
                yield "its columns are not those of the plan"
                return
            yield from self._metadata_problems(file.metadata.metadata or {})
            table = file.read()
        if self.rows is not None:
            yield from row_problems(
                table, record=self.record, plan=self.plan, rows=self.rows, copied=self.copied
            )

    def _metadata_problems(self, metadata: dict[bytes, bytes]) -> Iterator[str]:
        record = self.record
        expected = {
            columns.METADATA_JOB: self.plan.job_id,
            columns.METADATA_SHARD: str(record.shard),
            columns.METADATA_REVISION: str(record.revision),
            columns.METADATA_ATTEMPT: record.attempt,
            columns.METADATA_PLAN_SHA256: self.plan_sha256,
        }
        for name, value in expected.items():
            if metadata.get(name.encode()) != value.encode():
                yield f"its file metadata does not say {name} = {value}"


def content_problems(path: Path, *, num_bytes: int, sha256: str) -> Iterator[str]:
    """Whether a file has the bytes that were recorded."""
    size = path.stat().st_size
    if size != num_bytes:
        yield f"it has {size} bytes, not {num_bytes}"
    elif sha256_file(path) != sha256:
        yield "its SHA-256 is not the recorded one"
