"""Parquet files and saved datasets: columns checked once, rows streamed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.inputs.base import RawRow, Trouble, Wanted
from jobs.inputs.files import find_files
from jobs.inputs.reading import InputReader, read_file
from jobs.inputs.typed import BATCH_ROWS
from manifests.errors import InputError
from tests.jobs.inputs.support import job_over, rows_over

Write = Callable[[Path, pa.Table], Path]


def as_parquet(folder: Path, table: pa.Table) -> Path:
    path = folder / "p.parquet"
    pq.write_table(table, path, row_group_size=700)
    return path


def as_dataset(folder: Path, table: pa.Table) -> Path:
    path = folder / "saved"
    path.mkdir()
    (path / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    with pa.ipc.new_stream(path / "data.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=1500)
    return path


@pytest.fixture(params=[as_parquet, as_dataset], ids=["parquet", "dataset"])
def write(request: pytest.FixtureRequest) -> Write:
    made: Write = request.param
    return made


def raw(uri: Path, wanted: Wanted | None = None) -> list[RawRow]:
    (file,) = find_files(job_over(uri).input)
    return list(read_file(file, wanted or Wanted()))


def test_rows_come_in_order_with_all_columns(tmp_path: Path, write: Write) -> None:
    rows = raw(write(tmp_path, pa.table({"prompt": ["a", None], "x": [1, 2]})))
    assert [row.values for row in rows] == [{"prompt": "a", "x": 1}, {"prompt": None, "x": 2}]


def test_numbering_goes_on_over_batches(tmp_path: Path, write: Write) -> None:
    count = 4 * BATCH_ROWS + 3
    rows = raw(write(tmp_path, pa.table({"prompt": [str(i) for i in range(count)]})))
    assert [row.values for row in rows] == [{"prompt": str(i)} for i in range(count)]
    assert [row.index for row in rows] == list(range(count))
    assert rows[-1].place.endswith(f", row {count}")


def test_columns_of_no_use_are_not_read(tmp_path: Path, write: Write) -> None:
    uri = write(tmp_path, pa.table({"prompt": ["a"], "x": [1], "y": [2]}))
    (row,) = raw(uri, Wanted(only=frozenset({"prompt", "y"})))
    assert row.values == {"prompt": "a", "y": 2}


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
)
def test_every_kind_of_text_column_is_taken(tmp_path: Path, kind: pa.DataType) -> None:
    table = pa.table({"prompt": pa.array(["a"]).cast(kind)})
    assert [row.prompt for row in rows_over(as_parquet(tmp_path, table))] == ["a"]


def test_a_list_of_structs_holds_messages(tmp_path: Path, write: Write) -> None:
    table = pa.table({"m": [[{"role": "user", "content": "hi", "name": None}]]})
    (row,) = rows_over(write(tmp_path, table), columns={"messages": "m"})
    assert row.messages == '[{"role": "user", "content": "hi"}]'


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"columns": {"prompt": "promt"}}, "input.columns.prompt: .* no column `promt`; did you"),
        ({"columns": {"id": "key"}}, "input.columns.id: .* no column `key`; it has prompt, n"),
        ({"columns": {"messages": "m"}}, "input.columns.messages: .* has no column `m`"),
        ({"columns": {"seed": "s"}}, "input.columns.seed: .* has no column `s`"),
        ({"columns": {"prompt": "n"}}, "input.columns.prompt: column `n` of .* int64, not text"),
        ({"prompt": {"template": "{q}"}}, "prompt.template: .* has no column `q`"),
        ({"output": {"uri": "/o", "carry": ["x"]}}, "output.carry: .* has no column `x`"),
        ({"filter": "z == 1"}, "input.filter: .* has no column `z`"),
    ],
)
def test_a_missing_or_wrong_column_is_an_error_of_the_file(
    tmp_path: Path, write: Write, groups: dict[str, Any], words: str
) -> None:
    uri = write(tmp_path, pa.table({"prompt": ["a"], "n": [1]}))
    with pytest.raises(InputError, match=words):
        rows_over(uri, **groups)


def test_a_file_that_is_something_else_is_one_sentence(tmp_path: Path, write: Write) -> None:
    uri = write(tmp_path, pa.table({"prompt": ["a"]}))
    path = uri / "data.arrow" if uri.is_dir() else uri
    path.write_bytes(b"this is neither of the two at all")
    with pytest.raises(InputError, match=r"cannot be read as (Parquet|a saved dataset)") as caught:
        rows_over(uri)
    assert "\n" not in str(caught.value)


def test_text_that_is_not_utf8_is_trouble_of_its_row_only(tmp_path: Path, write: Write) -> None:
    data = pa.array([b"a", b"\xed\xa0\x80", b"c"], pa.binary())
    table = pa.table({"prompt": pa.Array.from_buffers(pa.string(), 3, data.buffers())})
    first, second, third = raw(write(tmp_path, table))
    assert (first.values, third.values) == ({"prompt": "a"}, {"prompt": "c"})
    assert isinstance(second.values, Trouble)
    assert second.values.error_class == "InvalidUtf8"


def test_a_dataset_that_the_library_saved_is_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    values = [{"key": f"r{i}", "prompt": f"say {i}"} for i in range(7)]
    datasets.Dataset.from_list(values).save_to_disk(str(tmp_path / "saved"), num_shards=2)
    rows = rows_over(tmp_path / "saved", columns={"id": "key"})
    assert [(row.id, row.prompt) for row in rows] == [(v["key"], v["prompt"]) for v in values]


def test_files_of_several_formats_are_one_input(tmp_path: Path) -> None:
    parquet = as_parquet(tmp_path, pa.table({"prompt": ["a", "b"]}))
    (tmp_path / "q.jsonl").write_text('{"prompt": "c"}\n')
    rows = rows_over([str(parquet), f"{tmp_path}/q.jsonl"])
    assert [(row.row, row.id, row.prompt) for row in rows] == [
        (0, "p.parquet:0", "a"),
        (1, "p.parquet:1", "b"),
        (2, "q.jsonl:0", "c"),
    ]


def test_the_limit_counts_over_all_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"prompt": "x"}\n' * 3)
    rows = rows_over(f"{tmp_path}/*.jsonl", limit=4)
    assert [row.id for row in rows] == ["a.jsonl:0", "a.jsonl:1", "a.jsonl:2", "b.jsonl:0"]


def test_an_appended_row_with_the_id_of_a_planned_one_is_refused_and_both_are_named(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"id": "{name}", "prompt": "x"}}\n' for name in "aabcb"))
    reader = InputReader(job_over(path, columns={"id": "id"}))
    rows = reader.rows(num_planned=3)
    assert [next(rows).error_class for _ in range(4)] == [None, "DuplicateId", None, None]
    with pytest.raises(InputError, match=r"a.jsonl, line 5: the appended row 4 .* `b`.* row 2 of"):
        next(rows)
