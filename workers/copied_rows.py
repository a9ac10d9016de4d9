"""The rows of a revised shard that are not decoded again: as the parent seal's file has them."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from manifests.columns import METADATA_DISTRIBUTION_PRESERVING
from manifests.committed import committed_table
from manifests.open_revision import OpenRevision


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedRows:
    """Output rows, and what their file says about the distribution they follow."""

    table: pa.Table
    distribution: str


def read_copied_rows(revision: OpenRevision, shard: int) -> CopiedRows | None:
    """Rows to copy, or None where all are decoded; `DamagedError` if their file is not whole.

    Their `attempt` column keeps naming the attempt that decoded them.
    """
    chosen = revision.rows(shard)
    if chosen is None:
        return None
    sealed = revision.copied_from(shard)
    table = committed_table(revision.store, revision.plan, sealed)
    with revision.store.open_local(sealed.data_key) as path:
        metadata = pq.read_metadata(path).metadata
    is_chosen = pc.is_in(table["row"], pa.array(sorted(chosen), pa.int32()))
    return CopiedRows(
        table=table.filter(pc.invert(is_chosen)),
        distribution=metadata[METADATA_DISTRIBUTION_PRESERVING.encode()].decode(),
    )
