"""JSONL: objects, and lines that are none; packed or not."""

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.inputs.base import RawRow, Trouble
from jobs.inputs.jsonl import read_jsonl
from manifests.errors import InputError
from tests.jobs.inputs.support import rows_over


def read(data: bytes) -> list[RawRow]:
    return list(read_jsonl(io.BytesIO(data), "p.jsonl"))


def test_each_line_is_a_row_with_its_line_number() -> None:
    rows = read(b'{"a": 1}\n\n  \n{"a": 2}')
    assert [(row.index, row.place, row.values) for row in rows] == [
        (0, "p.jsonl, line 1", {"a": 1}),
        (1, "p.jsonl, line 4", {"a": 2}),
    ]


def test_windows_line_ends_and_a_byte_order_mark_are_taken() -> None:
    assert read(b'\xef\xbb\xbf{"a": "x"}\r\n')[0].values == {"a": "x"}


def test_a_line_separator_inside_text_does_not_end_a_row() -> None:
    (row,) = read('{"a": "x\u2028y"}\n'.encode())
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
    line: bytes, error_class: str, words: str
) -> None:
    good, bad, after = read(b'{"a": 1}\n' + line + b'\n{"a": 2}\n')
    assert (good.values, after.values) == ({"a": 1}, {"a": 2})
    assert isinstance(bad.values, Trouble)
    assert bad.values.error_class == error_class
    assert words in bad.values.message
    assert bad.place == "p.jsonl, line 2"


LINES = b'{"prompt": "a"}\n{"prompt": "b"}\n'


def test_gzip_of_several_members_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress(LINES) + gzip.compress(b'{"prompt": "c"}\n'))
    assert [row.prompt for row in rows_over(path)] == ["a", "b", "c"]


@pytest.mark.parametrize("suffix", [".zst", ".zstd"])
def test_zstd_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"p.jsonl{suffix}"
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(LINES)
    assert [(row.id, row.prompt) for row in rows_over(path)] == [
        (f"p.jsonl{suffix}:0", "a"),
        (f"p.jsonl{suffix}:1", "b"),
    ]


@pytest.mark.parametrize("name", ["p.jsonl.gz", "p.jsonl.zst"])
@pytest.mark.parametrize("kind", ["torn", "no archive"])
def test_a_torn_archive_is_an_error_of_the_file(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    with pa.CompressedOutputStream(str(path), "gzip" if name.endswith("gz") else "zstd") as stream:
        stream.write(LINES * 100)
    data = path.read_bytes()
    path.write_bytes(data[:-5] if kind == "torn" else b"plain text\n")
    with pytest.raises(InputError, match=rf"^input\.uri {path}: it cannot be read: ") as caught:
        rows_over(path)
    assert "\n" not in str(caught.value)
