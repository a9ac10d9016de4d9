"""The Arrow files of a Hugging Face dataset that was saved with `save_to_disk`."""

from collections.abc import Iterator
from typing import IO

import pyarrow as pa

from jobs.inputs.base import RawRow, Wanted
from jobs.inputs.opening import reason
from jobs.inputs.typed import BATCH_ROWS, batch_rows, check_schema
from manifests.errors import InputError


def read_saved_dataset(stream: IO[bytes], label: str, wanted: Wanted) -> Iterator[RawRow]:
    """The rows of one of its files, which are Arrow streams."""
    try:
        with pa.ipc.open_stream(stream) as reader:
            check_schema(label, reader.schema, wanted)
            yield from batch_rows(_slices(reader, wanted), label)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"input.uri: {label} cannot be read as a saved dataset: {reason(error)}"
        ) from None


def _slices(reader: pa.RecordBatchReader, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        kept = batch.select(wanted.kept(batch.schema.names))
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield kept.slice(start, BATCH_ROWS)
