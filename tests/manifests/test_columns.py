"""Output columns: a public format, frozen here."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manifests.columns import Trace, output_schema, schema_fingerprint

COLUMNS = """
id: large_string!
sample: int32!
text: large_string
token_ids: list<element: int32 not null>
finish_reason: string
tokens: int32!
tokens_with_stop: int32!
prompt_tokens: int32!
nfe: int32!
nfe_prefill: int32!
nfe_store: int32!
transitions: int32!
rounds: int32!
drafted: int32!
accepted: int32!
positions: int64!
wall_s: double!
queue_s: double!
shard: int32!
row: int32!
attempt: string!
seed: uint64!
error_class: string
error_message: string
carried: large_string
"""
TRACED = """commit_step: list<element: int32 not null>
log_probability: list<element: float not null>
confidence: list<element: float not null>
"""
TRAJECTORY = """commit_position: list<element: int32 not null>
commit_token: list<element: int32 not null>
commit_transition: list<element: int32 not null>
"""
COLLECTED = """trajectory_states: int32
trajectory_start: large_binary
trajectory_when: large_binary
trajectory_block: large_binary
trajectory_step: large_binary
trajectory_log_probs: large_binary
trajectory_doubts: large_binary
"""


def describe(schema: pa.Schema) -> str:
    """One line per column; `!` where nulls are not allowed."""
    return "\n" + "".join(
        f"{field.name}: {field.type}{'' if field.nullable else '!'}\n" for field in schema
    )


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ("none", COLUMNS),
        ("tokens", COLUMNS + TRACED),
        ("commits", COLUMNS + TRACED + TRAJECTORY),
    ],
)
def test_the_columns_of_each_trace_are_these(trace: Trace, expected: str) -> None:
    assert describe(output_schema(trace)) == expected


@pytest.mark.parametrize(("trace", "expected"), [("none", COLUMNS), ("tokens", COLUMNS + TRACED)])
def test_collecting_adds_the_trajectory_to_any_trace(trace: Trace, expected: str) -> None:
    assert describe(output_schema(trace, work="collect")) == expected + COLLECTED
    assert output_schema(trace, work="null") == output_schema(trace)


def test_the_schema_survives_a_parquet_file(tmp_path: Path) -> None:
    schema = output_schema("commits", work="collect")
    pq.write_table(pa.Table.from_pylist([], schema=schema), tmp_path / "f")
    assert pq.read_schema(tmp_path / "f").equals(schema)


def test_the_fingerprint_sees_names_types_and_nullability_but_no_metadata() -> None:
    schema = pa.schema([pa.field("a", pa.int32())])
    others = [
        pa.schema([pa.field("b", pa.int32())]),
        pa.schema([pa.field("a", pa.int64())]),
        pa.schema([pa.field("a", pa.int32(), nullable=False)]),
    ]
    assert schema_fingerprint(schema) == schema_fingerprint(schema.with_metadata({"k": "v"}))
    assert schema_fingerprint(schema) not in {schema_fingerprint(other) for other in others}
