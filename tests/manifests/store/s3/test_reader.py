"""The file-like view of an object."""

import io
import os

import pytest

from manifests.store.s3.reader import RangeReader

DATA = bytes(range(100))


@pytest.fixture
def fetched() -> list[tuple[int, int]]:
    """The ranges that were asked for."""
    return []


@pytest.fixture
def reader(fetched: list[tuple[int, int]]) -> RangeReader:
    """A reader over `DATA`."""

    def fetch(start: int, end: int) -> bytes:
        fetched.append((start, end))
        return DATA[start:end]

    return RangeReader(fetch, size=len(DATA))


def test_only_what_is_read_is_fetched(reader: RangeReader, fetched: list[tuple[int, int]]) -> None:
    reader.seek(90)
    assert (reader.read(4), reader.tell()) == (DATA[90:94], 94)
    assert reader.read(100) == DATA[94:]
    assert reader.read(1) == b""
    assert fetched == [(90, 94), (94, 100)]


def test_seeking_has_the_meanings_of_files(reader: RangeReader) -> None:
    assert (reader.readable(), reader.seekable(), reader.writable()) == (True, True, False)
    assert reader.seek(-10, os.SEEK_END) == 90
    assert reader.seek(5, os.SEEK_CUR) == 95
    assert reader.seek(-1000, os.SEEK_CUR) == 0
    assert reader.seek(1000) == 1000
    assert reader.read(1) == b""


def test_a_buffer_joins_small_reads(reader: RangeReader, fetched: list[tuple[int, int]]) -> None:
    with io.BufferedReader(reader, buffer_size=50) as buffered:
        assert b"".join(buffered.read(5) for _ in range(20)) == DATA
    assert fetched == [(0, 50), (50, 100)]
