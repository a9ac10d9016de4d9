"""Parquet: columns of text, or of message lists; every other column is carried along."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.inputs.base import RawRow, Trouble
from manifests.errors import InputError
from manifests.job import Columns

BATCH_ROWS = 512


def read_parquet(path: Path, columns: Columns) -> Iterator[RawRow]:
    """The rows of `path`; a wrong or missing column is an `InputError`, since all rows have it."""
    try:
        # Without pre-buffering, a batch at a time is in memory and not a row group.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            _check(path, file.schema_arrow, columns)
            number = 0
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                for values in _values(batch):
                    number += 1
                    yield RawRow(place=f"row {number} of the file", values=values)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"input.uri {path}: it cannot be read as Parquet: {reason}") from None


def _check(path: Path, schema: pa.Schema, columns: Columns) -> None:
    wanted = {
        "input.columns.id": columns.id,
        "input.columns.prompt": None if columns.messages else columns.prompt,
        "input.columns.messages": columns.messages,
    }
    for field, name in wanted.items():
        if name is None:
            continue
        if name not in schema.names:
            raise InputError(
                f"{field}: {path} has no column `{name}`; it has {', '.join(schema.names)}"
            )
        if field == "input.columns.prompt" and not _is_text(schema.field(name).type):
            raise InputError(
                f"{field}: column `{name}` of {path} holds {schema.field(name).type}, not text"
            )


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = pa.types
    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
    return any(test(kind) for test in tests)


def _values(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | Trouble]:
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        # Parquet does not enforce UTF-8; find the rows that break it.
        for index in range(batch.num_rows):
            yield _single(batch.slice(index, 1))


def _single(batch: pa.RecordBatch) -> dict[str, Any] | Trouble:
    try:
        values: dict[str, Any] = batch.to_pylist()[0]
    except UnicodeDecodeError:
        return Trouble(error_class="InvalidUtf8", message="a column of the row is not UTF-8 text")
    return values
