"""JSONL: objects, and lines that are none."""

from pathlib import Path

import pytest

from jobs.inputs.base import RawRow, Trouble
from jobs.inputs.jsonl import read_jsonl


def read(folder: Path, data: bytes) -> list[RawRow]:
    path = folder / "p.jsonl"
    path.write_bytes(data)
    return list(read_jsonl(path))


def test_each_line_is_a_row_with_its_line_number(tmp_path: Path) -> None:
    rows = read(tmp_path, b'{"a": 1}\n\n  \n{"a": 2}')
    assert [(row.place, row.values) for row in rows] == [
        ("line 1", {"a": 1}),
        ("line 4", {"a": 2}),
    ]


def test_windows_line_ends_and_a_byte_order_mark_are_taken(tmp_path: Path) -> None:
    assert read(tmp_path, b'\xef\xbb\xbf{"a": "x"}\r\n')[0].values == {"a": "x"}


def test_a_line_separator_inside_text_does_not_end_a_row(tmp_path: Path) -> None:
    (row,) = read(tmp_path, '{"a": "x\u2028y"}\n'.encode())
    assert row.values == {"a": "x\u2028y"}


@pytest.mark.parametrize(
    ("line", "error_class", "words"),
    [
        (b"nonsense", "InvalidJson", "the line is not JSON"),
        (b'{"a": 1', "InvalidJson", "the line is not JSON"),
        (b"[1]", "InvalidJson", "not a JSON object"),
        (b'"text"', "InvalidJson", "not a JSON object"),
        (b'{"a": NaN}', "InvalidJson", "NaN is not a JSON number"),
        (b'{"a": ' + b"1" * 5000 + b"}", "InvalidJson", "not JSON"),
        (b"[" * 200_000, "InvalidJson", "not JSON"),
        (b'{"a": "\xff"}', "InvalidUtf8", "not UTF-8"),
    ],
)
def test_a_bad_line_is_trouble_of_its_own_row_only(
    tmp_path: Path, line: bytes, error_class: str, words: str
) -> None:
    good, bad, after = read(tmp_path, b'{"a": 1}\n' + line + b'\n{"a": 2}\n')
    assert (good.values, after.values) == ({"a": 1}, {"a": 2})
    assert isinstance(bad.values, Trouble)
    assert bad.values.error_class == error_class
    assert words in bad.values.message
    assert bad.place == "line 2"
