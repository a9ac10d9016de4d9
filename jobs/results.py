"""Committed rows for Python: of a finished job, or of what there is so far."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from jobs.errors import JobError
from jobs.reading import open_job, read_committed
from manifests.columns import output_schema
from manifests.committed import committed_rows


def load_results(
    uri: str, *, columns: Sequence[str] | None = None, partial: bool = False
) -> pa.Table:
    """The committed rows of a job, in input order, as one Arrow table.

    `.to_pandas()`, `polars.from_arrow` and `datasets.Dataset` take it from there. What it holds are
    whole shards that were read back, hashed and compared with their commit records. While a retry
    or an extension is open, the rows of the seal before it count.

    Args:
        uri: the job's directory or `s3://` prefix.
        columns: names of columns; all without them.
        partial: take what is committed so far of a job that is not complete.

    Raises:
        NoJobError: there is no job.
        JobError: the job is not complete and ``partial`` was not asked for, or has no such column.
        DamagedError: a file is not what its record says.
    """
    tables = list(iterate_results(uri, columns=columns, partial=partial))
    return pa.concat_tables(tables)


def iterate_results(
    uri: str, *, columns: Sequence[str] | None = None, partial: bool = False
) -> Iterator[pa.Table]:
    """The same, one table per shard, so that no more than a shard is in memory.

    The first table is empty and has the schema, also where nothing is committed.
    """
    job = open_job(uri)
    schema = output_schema(job.plan.job.output.trace, work=job.plan.job.work)
    unknown = [name for name in columns or () if name not in schema.names]
    if unknown:
        raise JobError(f"`{unknown[0]}` is no column of the output; there are: {schema.names}")
    committed = read_committed(job)
    if committed.seal is None and not partial:
        done = f"{len(committed.records)} of {committed.num_shards} shards"
        raise JobError(f"{uri} is not complete ({done}); give partial=True for what is there")
    empty = schema.empty_table()
    yield empty if columns is None else empty.select(list(columns))
    yield from committed_rows(job.store, job.plan, committed.records, columns=columns)
