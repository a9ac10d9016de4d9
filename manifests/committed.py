"""Reading the committed output: only files that a record names, checked before they are used."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from manifests.columns import output_schema
from manifests.errors import DamagedError
from manifests.hashing import sha256_file
from manifests.plan import Plan
from manifests.records import CommitRecord, Seal, SealedShard
from manifests.store.base import Store


def committed_rows(
    store: Store,
    plan: Plan,
    committed: Seal | Mapping[int, CommitRecord],
    *,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """One table per committed shard, in shard order; of a seal, or of the records so far."""
    if isinstance(committed, Seal):
        shards: Sequence[SealedShard | CommitRecord] = committed.shards
    else:
        shards = [committed[shard] for shard in sorted(committed)]
    for shard in shards:
        yield committed_table(store, plan, shard, columns=columns)


def committed_table(
    store: Store,
    plan: Plan,
    shard: SealedShard | CommitRecord,
    *,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """The rows of one committed shard; `DamagedError` unless its file is what was committed."""
    with store.open_local(shard.data_key) as path:
        return _checked_table(path, shard=shard, plan=plan, columns=columns)


def _checked_table(
    path: Path,
    *,
    shard: SealedShard | CommitRecord,
    plan: Plan,
    columns: Sequence[str] | None,
) -> pa.Table:
    if sha256_file(path) != shard.sha256:
        raise DamagedError(f"{shard.data_key}: its bytes are not those of the commit record")
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        if not file.schema_arrow.equals(output_schema(plan.job.output.trace, work=plan.job.work)):
            raise DamagedError(f"{shard.data_key}: its columns are not those of the plan")
        table = file.read(columns=columns)
    if table.num_rows != shard.samples:
        raise DamagedError(f"{shard.data_key}: it has {table.num_rows} rows, not {shard.samples}")
    return table
