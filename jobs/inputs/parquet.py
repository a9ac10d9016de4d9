"""Parquet: a batch at a time, and only the columns that are of use."""

from collections.abc import Iterator
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.inputs.base import RawRow, Wanted
from jobs.inputs.opening import reason
from jobs.inputs.typed import BATCH_ROWS, batch_rows, check_schema
from manifests.errors import InputError


def read_parquet(stream: IO[bytes], label: str, wanted: Wanted) -> Iterator[RawRow]:
    """The rows of a file; a wrong or missing column is an `InputError`, since all rows have it."""
    try:
        # Without pre-buffering, a batch at a time is in memory and not a row group.
        with pq.ParquetFile(stream, pre_buffer=False, buffer_size=1 << 20) as file:
            check_schema(label, file.schema_arrow, wanted)
            columns = wanted.kept(file.schema_arrow.names)
            batches = file.iter_batches(batch_size=BATCH_ROWS, columns=columns, use_threads=False)
            yield from batch_rows(batches, label)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"input.uri: {label} cannot be read as Parquet; write it again ({reason(error)})"
        ) from None
