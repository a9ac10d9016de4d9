"""Record batches with a schema, as raw rows: what Parquet and saved datasets share."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from jobs.inputs.base import RawRow, Trouble, Values, Wanted
from manifests.errors import InputError

BATCH_ROWS = 512


def check_schema(label: str, schema: pa.Schema, wanted: Wanted) -> None:
    """Raise `InputError` where a column is missing or, of the prompt, holds something else."""
    wanted.check_names(label, schema.names)
    for setting, column in wanted.required:
        kind = schema.field(column).type
        if setting == wanted.text and not _is_text(kind):
            raise InputError(
                f"{setting}: column `{column}` of {label} holds {kind}, not text; name a column "
                "with text, or insert this one by prompt.template"
            )


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = pa.types
    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
    return any(test(kind) for test in tests)


def batch_rows(batches: Iterable[pa.RecordBatch], label: str) -> Iterator[RawRow]:
    """The rows of consecutive batches."""
    index = 0
    for batch in batches:
        for values in _values(batch):
            yield RawRow(file=label, index=index, place=f"{label}, row {index + 1}", values=values)
            index += 1


def _values(batch: pa.RecordBatch) -> Iterator[Values]:
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        # Arrow does not enforce UTF-8; find the rows that break it.
        for index in range(batch.num_rows):
            yield _single(batch.slice(index, 1))


def _single(batch: pa.RecordBatch) -> Values:
    try:
        values: Values = batch.to_pylist()[0]
    except UnicodeDecodeError:
        return Trouble(error_class="InvalidUtf8", message="a column of the row is not UTF-8 text")
    return values
