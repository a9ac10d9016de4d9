"""The staged input: the one format in which workers see rows.

Planning writes all rows, normalised, into `input/part-*.parquet` with one row group per shard.
A row with trouble that planning found carries the error and becomes an error row of the output.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from manifests.errors import DamagedError, StoreError
from manifests.plan import Plan, ShardPlan
from manifests.store.base import Store

STAGED_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("id", pa.large_string(), nullable=False),
        pa.field("prompt", pa.large_string()),
        pa.field("messages", pa.large_string()),
        pa.field("error_class", pa.large_string()),
        pa.field("error_message", pa.large_string()),
        pa.field("carried", pa.large_string()),
        pa.field("max_tokens", pa.int32()),
        pa.field("temperature", pa.float64()),
        pa.field("seed", pa.int64()),
    ]
)

# Keyword arguments of `pyarrow.parquet.ParquetWriter`. Footers hold no text of users.
STAGED_WRITE_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "write_page_checksum": True,
    "use_dictionary": False,
    "write_statistics": ["row", "id"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRow:
    """One input row. `prompt` or `messages` (JSON) is set, or else `error_class`."""

    row: int  # global index in the input
    id: str
    prompt: str | None = None
    messages: str | None = None
    error_class: str | None = None
    error_message: str | None = None
    carried: str | None = None  # JSON object of the input columns not used otherwise
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None


def staged_table(rows: Sequence[StagedRow]) -> pa.Table:
    """The rows under `STAGED_SCHEMA`, to be written as one row group."""
    arrays = [
        pa.array([getattr(row, field.name) for row in rows], type=field.type)
        for field in STAGED_SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=STAGED_SCHEMA)


_json_text = json.JSONEncoder(ensure_ascii=False).encode


class RowsDigest:
    """SHA-256 over what is decoded and carried, whatever the form of the input.

    A text prompt counts as the one user message that it becomes, so that the same prompts give the
    same digest as text, as messages, or as requests. Error messages, which quote places of files,
    do not count.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, row: StagedRow) -> None:
        """The next row."""
        messages = row.messages
        if row.prompt is not None:
            messages = f'[{{"role": "user", "content": {_json_text(row.prompt)}}}]'
        values: list[str | float | None] = [row.id, messages, row.error_class, row.carried]
        values += [row.max_tokens, row.temperature, row.seed]
        self._digest.update(json.dumps(values).encode() + b"\n")

    def hexdigest(self) -> str:
        """64 lower-case hex digits."""
        return self._digest.hexdigest()


class ShardReader:
    """Reads shards one after the other, in any thread.

    Keeps the footer of the part that was read last: it has a line for every shard in the part, and
    a part never changes.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: tuple[str, pq.FileMetaData] | None = None

    def read(self, shard: ShardPlan) -> list[StagedRow]:
        """The rows of a shard in input order, checked against the plan."""
        with self._store.open_reader(shard.part) as file:
            try:
                table = self._read_table(file, shard)
            except StoreError:  # nothing is wrong with the object
                raise
            except (OSError, ValueError, IndexError, pa.ArrowException) as error:
                raise DamagedError(f"{shard.part}: cannot be read ({error})") from error
        return checked_rows(table, shard_plan=shard)

    def _read_table(self, file: Any, shard: ShardPlan) -> pa.Table:
        last = self._last
        footer = last[1] if last is not None and last[0] == shard.part else None
        with open_part(file, footer=footer) as part:
            self._last = shard.part, part.metadata
            return part.read_row_group(shard.row_group, use_threads=False)


def read_shard(store: Store, plan: Plan, shard: int) -> list[StagedRow]:
    """The rows of one shard in input order, checked against the plan."""
    return ShardReader(store).read(plan.shards[shard])


def open_part(file: Any, *, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """A staged file whose page checksums are verified; its footer is read unless it is known.

    Let it be read and decoded in the calling thread only (``use_threads=False``): a thread of one
    of Arrow's pools that lets go of a Python reader's bytes while the interpreter ends aborts the
    process.
    """
    return pq.ParquetFile(file, metadata=footer, page_checksum_verification=True, pre_buffer=False)


def checked_rows(table: pa.Table, *, shard_plan: ShardPlan) -> list[StagedRow]:
    """The table as rows, or `DamagedError` where it is not what the plan says."""
    place = f"{shard_plan.part}: row group {shard_plan.row_group}"
    if not table.schema.equals(STAGED_SCHEMA):
        raise DamagedError(f"{place}: its columns are not those of staged input")
    rows = [StagedRow(**values) for values in table.to_pylist()]
    first = shard_plan.first_row
    if [row.row for row in rows] != list(range(first, first + shard_plan.rows)):
        raise DamagedError(f"{place}: its rows are not those of shard {shard_plan.shard}")
    return rows
