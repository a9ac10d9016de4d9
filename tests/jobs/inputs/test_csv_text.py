"""CSV and TSV: text in all its quoting, and rows that are none."""

import gzip
import io
from pathlib import Path

import pytest

from jobs.inputs.base import RawRow, Trouble, Wanted
from jobs.inputs.csv_text import read_csv
from manifests.errors import InputError
from tests.jobs.inputs.support import rows_over


def read(data: str | bytes, *, delimiter: str = ",", wanted: Wanted | None = None) -> list[RawRow]:
    stream = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return list(read_csv(stream, "p.csv", wanted or Wanted(), delimiter=delimiter))


def test_values_are_text_and_quoted_fields_may_span_lines() -> None:
    rows = read('id,prompt\n007,"a ""b""\nc, d"\r\n\n8,e\n')
    assert [(row.index, row.place, row.values) for row in rows] == [
        (0, "p.csv, line 2", {"id": "007", "prompt": 'a "b"\nc, d'}),
        (1, "p.csv, line 5", {"id": "8", "prompt": "e"}),
    ]


def test_a_byte_order_mark_and_other_delimiters_are_taken() -> None:
    (row,) = read(b"\xef\xbb\xbfid\tprompt\n1\ta,b\n", delimiter="\t")
    assert row.values == {"id": "1", "prompt": "a,b"}


def test_a_field_may_be_very_long() -> None:
    (row,) = read("prompt\n" + "x" * 300_000 + "\n")
    assert row.values == {"prompt": "x" * 300_000}


def test_columns_of_no_use_are_left_out() -> None:
    (row,) = read("a,b\n1,2\n", wanted=Wanted(only=frozenset({"b"})))
    assert row.values == {"b": "2"}


@pytest.mark.parametrize(
    ("line", "error_class", "words"),
    [
        (b"1,2,3", "InvalidCsv", "the row has 3 fields, the header 2"),
        (b"1", "InvalidCsv", "the row has 1 fields"),
        (b'1,"a"b', "InvalidCsv", "the row is not CSV"),
        (b"1,\xff", "InvalidUtf8", "not UTF-8"),
    ],
)
def test_a_bad_line_is_trouble_of_its_own_row_only(
    line: bytes, error_class: str, words: str
) -> None:
    good, bad, after = read(b"id,prompt\n0,a\n" + line + b"\n2,b\n")
    assert (good.values, after.values) == ({"id": "0", "prompt": "a"}, {"id": "2", "prompt": "b"})
    assert isinstance(bad.values, Trouble)
    assert bad.values.error_class == error_class
    assert words in bad.values.message


def test_a_bad_last_line_without_an_end_is_trouble_of_its_row() -> None:
    (bad,) = read('id,prompt\n1,"a"b')
    assert isinstance(bad.values, Trouble)


def test_a_quote_that_is_never_closed_is_an_error_of_the_file() -> None:
    with pytest.raises(InputError, match=r"p\.csv, line 3: a quote that is opened in this row"):
        read('id,prompt\n1,a\n2,"b\n3,c\n')


@pytest.mark.parametrize("header", ["a,a", "a,", "", '"a'])
def test_a_first_line_that_names_no_columns_is_refused(header: str) -> None:
    with pytest.raises(InputError, match=r"p\.csv: its first line"):
        read(f"{header}\n1,2\n")


def test_a_missing_column_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("key,promt\n1,a\n")
    with pytest.raises(InputError, match="no column `prompt`; did you mean `promt`"):
        rows_over(path)


def test_messages_parameters_and_ids_are_read_from_text(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    messages = '"[{""role"": ""user"", ""content"": ""hi""}]"'
    path.write_text(f"k\tm\tn\tt\ts\n007\t{messages}\t5\t0.5\t9\nb\t{messages}\t\t\t\n")
    columns = {"id": "k", "messages": "m", "max_tokens": "n", "temperature": "t", "seed": "s"}
    first, second = rows_over(path, columns=columns)
    assert first.messages == '[{"role": "user", "content": "hi"}]'
    assert (first.id, first.max_tokens, first.temperature, first.seed) == ("007", 5, 0.5, 9)
    assert (second.max_tokens, second.temperature, second.seed) == (None, None, None)


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.txt"])
@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_any_file_of_fields_can_have_a_delimiter_of_its_own(
    tmp_path: Path, name: str, delimiter: str
) -> None:
    data = "id,prompt\n1,a b\n".replace(",", delimiter).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (row,) = rows_over(
        tmp_path / name,
        columns={"id": "id"},
        delimiter=delimiter,
        format="csv" if name.endswith(".txt") else "auto",
    )
    assert (row.id, row.prompt) == ("1", "a b")


def test_a_delimiter_beside_files_without_fields_is_taken_by_those_that_have_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_text("family;prompt\nx;a\n")
    (tmp_path / "b.jsonl").write_text('{"prompt": "b;c"}\n')
    rows = rows_over([f"{tmp_path}/a.csv", f"{tmp_path}/b.jsonl"], delimiter=";")
    assert [row.prompt for row in rows] == ["a", "b;c"]


def test_a_delimiter_that_no_file_has_a_use_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text('{"prompt": "b"}\n')
    with pytest.raises(InputError, match=r"no file of the input is CSV \(b\.jsonl is jsonl\)"):
        rows_over(tmp_path / "b.jsonl", delimiter=";")
