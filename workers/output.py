"""One shard's Parquet file: written under the explicit schema, then read back and compared.

A Parquet writer that is interrupted leaves a valid file with fewer rows, so a file is believed only
after it was opened again: schema, number of rows, ids and samples in order. The facts of that
second look, never those of the first, go into the commit record. Footers hold statistics of ids
and numbers only: no text of a user.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from manifests.columns import TRAJECTORY_COLUMNS, schema_fingerprint
from manifests.hashing import row_ids_digest, sha256_file
from manifests.staged import StagedRow
from workers.errors import OutputError
from workers.samples import OutputSample
from workers.shard_assembly import ShardAssembly

# Text is long and rarely repeats, so that a dictionary only costs; these few columns repeat.
_DICTIONARY = ["finish_reason", "shard", "attempt", "error_class"]
_UNSORTED = frozenset({"text", "error_message", "carried", *TRAJECTORY_COLUMNS})

Value = Callable[[OutputSample, StagedRow], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """What a written file holds, as read back."""

    bytes: int
    sha256: str
    samples: int
    ok: int
    errors: int
    row_ids_sha256: str
    schema_fingerprint: str


def write_shard(
    path: Path,
    assembly: ShardAssembly,
    *,
    schema: pa.Schema,
    metadata: Mapping[str, str],
    copied: pa.Table | None = None,
) -> None:
    """Write a complete assembly, and rows copied beside it, as one row group in input order."""
    table = _decoded(assembly, schema=schema)
    if copied is not None:
        table = pa.concat_tables([table, copied]).sort_by(
            [("row", "ascending"), ("sample", "ascending")]
        )
    table.validate(full=True)
    with pq.ParquetWriter(path, schema, **_writer_options(schema)) as writer:
        writer.write_table(table, row_group_size=max(1, table.num_rows))
        writer.add_key_value_metadata(dict(metadata))


def _decoded(assembly: ShardAssembly, *, schema: pa.Schema) -> pa.Table:
    samples = assembly.in_order()
    values = _VALUES | {"attempt": lambda sample, row: assembly.attempt}
    arrays = [
        pa.array([values[field.name](s, assembly.rows[s.row]) for s in samples], type=field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _writer_options(schema: pa.Schema) -> dict[str, Any]:
    plain = [field.name for field in schema if not pa.types.is_list(field.type)]
    return {
        "compression": "zstd",
        "use_dictionary": _DICTIONARY,
        "write_statistics": [name for name in plain if name not in _UNSORTED],
        "write_page_checksum": True,
    }


def check_shard(path: Path, assembly: ShardAssembly, *, schema: pa.Schema) -> FileFacts:
    """Open a written file again and compare it with what had to be written."""
    table = pq.read_table(path, page_checksum_verification=True)
    if not table.schema.equals(schema, check_metadata=False):
        raise OutputError(f"shard {assembly.shard.shard}: the file's columns are not the planned")
    expected = [(row.id, sample) for row in assembly.rows for sample in range(assembly.num_samples)]
    found = list(zip(table["id"].to_pylist(), table["sample"].to_pylist(), strict=True))
    if found != expected:
        raise OutputError(
            f"shard {assembly.shard.shard}: the file has {len(found)} samples, "
            f"and not the {len(expected)} planned ones in order"
        )
    ok = pc.sum(pc.is_null(table["error_class"]), min_count=0).as_py()
    return FileFacts(
        bytes=path.stat().st_size,
        sha256=sha256_file(path),
        samples=table.num_rows,
        ok=ok,
        errors=table.num_rows - ok,
        row_ids_sha256=row_ids_digest(found),
        schema_fingerprint=schema_fingerprint(table.schema),
    )


def _of_sample(name: str) -> Value:
    return lambda sample, row: getattr(sample, name)


def _of_tokens(name: str) -> Value:
    return lambda sample, row: sample.token_trace and getattr(sample.token_trace, name)


def _of_commits(name: str) -> Value:
    return lambda sample, row: sample.trace and getattr(sample.trace, name)


def _of_trajectory(name: str) -> Value:
    return lambda sample, row: sample.trajectory and sample.trajectory[name]


def _error_message(sample: OutputSample, row: StagedRow) -> str | None:
    """The message, whatever text it quotes: a lone surrogate in it cannot be stored."""
    message = sample.error_message
    return message and message.encode("utf-8", "replace").decode()


# Named alike in the schema and in `OutputSample`.
_SAMPLE_COLUMNS = (
    *("sample", "text", "token_ids", "finish_reason", "tokens_with_stop"),
    *("prompt_tokens", "nfe", "nfe_prefill"),
    *("nfe_store", "transitions", "rounds", "drafted", "accepted", "positions", "wall_s"),
    *("queue_s", "shard", "row", "error_class"),
)
_VALUES: dict[str, Value] = {name: _of_sample(name) for name in _SAMPLE_COLUMNS} | {
    "id": lambda sample, row: row.id,
    "carried": lambda sample, row: row.carried,
    "tokens": _of_sample("num_tokens"),
    "seed": _of_sample("key"),
    "error_message": _error_message,
    "commit_step": _of_tokens("steps"),
    "log_probability": _of_tokens("log_probabilities"),
    "confidence": _of_tokens("confidences"),
    "commit_position": _of_commits("positions"),
    "commit_token": _of_commits("tokens"),
    "commit_transition": _of_commits("steps"),
}
_VALUES |= {name: _of_trajectory(name) for name in TRAJECTORY_COLUMNS}
