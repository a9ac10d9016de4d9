"""Parquet: columns checked once, rows streamed."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.inputs.base import RawRow, Trouble, read_input
from jobs.inputs.parquet import BATCH_ROWS
from manifests.errors import InputError
from manifests.job import Columns


def read(folder: Path, table: pa.Table, **columns: Any) -> list[RawRow]:
    path = folder / "p.parquet"
    pq.write_table(table, path)
    return list(read_input(path, Columns(**columns)))


def test_rows_come_in_order_with_all_columns(tmp_path: Path) -> None:
    table = pa.table({"prompt": ["a", None], "x": [1, 2]})
    assert [row.values for row in read(tmp_path, table)] == [
        {"prompt": "a", "x": 1},
        {"prompt": None, "x": 2},
    ]


def test_numbering_goes_on_over_batches_and_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    count = 2 * BATCH_ROWS + 3
    pq.write_table(pa.table({"prompt": [str(i) for i in range(count)]}), path, row_group_size=700)
    rows = list(read_input(path, Columns()))
    assert [row.values for row in rows] == [{"prompt": str(i)} for i in range(count)]
    assert rows[-1].place == f"row {count} of the file"


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
)
def test_every_kind_of_text_column_is_taken(tmp_path: Path, kind: pa.DataType) -> None:
    (row,) = read(tmp_path, pa.table({"prompt": pa.array(["a"]).cast(kind)}))
    assert row.values == {"prompt": "a"}


def test_a_list_of_structs_holds_messages(tmp_path: Path) -> None:
    messages = [[{"role": "user", "content": "hi"}]]
    (row,) = read(tmp_path, pa.table({"m": messages}), messages="m")
    assert row.values == {"m": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"prompt": "question"},
            "input.columns.prompt: .* has no column `question`; it has prompt",
        ),
        ({"id": "key"}, "input.columns.id: .* has no column `key`"),
        ({"messages": "m"}, "input.columns.messages: .* has no column `m`"),
        ({"prompt": "n"}, "input.columns.prompt: column `n` of .* holds int64, not text"),
    ],
)
def test_a_missing_or_wrong_column_is_an_error_of_the_file(
    tmp_path: Path, columns: dict[str, str], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        read(tmp_path, pa.table({"prompt": ["a"], "n": [1]}), **columns)


def test_a_file_that_is_no_parquet_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    path.write_bytes(b"this is not Parquet at all")
    with pytest.raises(InputError, match=r"cannot be read as Parquet") as caught:
        list(read_input(path, Columns()))
    assert "\n" not in str(caught.value)


def test_text_that_is_not_utf8_is_trouble_of_its_row_only(tmp_path: Path) -> None:
    data = pa.array([b"a", b"\xed\xa0\x80", b"c"], pa.binary())
    table = pa.table({"prompt": pa.Array.from_buffers(pa.string(), 3, data.buffers())})
    first, second, third = read(tmp_path, table)
    assert (first.values, third.values) == ({"prompt": "a"}, {"prompt": "c"})
    assert isinstance(second.values, Trouble)
    assert second.values.error_class == "InvalidUtf8"
