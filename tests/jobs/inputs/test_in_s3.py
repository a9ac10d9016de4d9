"""Inputs in S3: one object or a glob, read as files are."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.inputs.opening import identify
from manifests.errors import InputError, ManifestError
from manifests.hashing import sha256_hex
from manifests.job_running import Storage
from manifests.store import open_store
from tests.jobs.inputs.support import rows_over

pytestmark = pytest.mark.s3

LINE = b'{"prompt": "say a"}\n'


@pytest.fixture
def folder(s3_bucket: str) -> str:
    """A prefix with files of several kinds."""
    uri = f"s3://{s3_bucket}/in"
    store = open_store(uri)
    store.put_if_absent("one.jsonl", LINE * 2)
    store.put_if_absent("days/1/a.jsonl", LINE)
    store.put_if_absent("days/1/note.txt", b"no rows")
    store.put_if_absent("days/2/a.jsonl.gz", gzip.compress(LINE * 3))
    store.put_if_absent("empty.jsonl", b"")
    return uri


def test_an_object_is_read_as_the_file_would_be(folder: str) -> None:
    assert [row.id for row in rows_over(f"{folder}/one.jsonl")] == ["one.jsonl:0", "one.jsonl:1"]


def test_a_glob_is_read_in_order_of_names_below_what_is_fixed(folder: str) -> None:
    rows = rows_over(f"{folder}/days/*/a.*")
    assert [row.id for row in rows] == [
        "1/a.jsonl:0",
        *(f"2/a.jsonl.gz:{row}" for row in range(3)),
    ]
    assert rows_over(f"{folder}/**/a.jsonl")[0].prompt == "say a"


def test_parquet_is_read_by_ranges(folder: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"prompt": ["a", "b"]}), tmp_path / "p.parquet")
    open_store(folder).put_file_if_absent("p.parquet", tmp_path / "p.parquet")
    assert [row.prompt for row in rows_over(f"{folder}/p.parquet")] == ["a", "b"]


def test_identity_is_of_the_bytes(folder: str) -> None:
    identity = identify(f"{folder}/one.jsonl", Storage())
    assert (identity.bytes, identity.sha256) == (2 * len(LINE), sha256_hex(LINE * 2))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent.jsonl", "there is no such object"),
        ("empty.jsonl", "the file is empty"),
        ("days/*/b.jsonl", "no object matches"),
        ("days/", "this is a folder; name its files with a glob"),
        ("days/1/note.txt", "the name must end in one of"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(folder: str, name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        rows_over(f"{folder}/{name}")


def test_credentials_in_an_input_uri_are_refused_and_not_repeated() -> None:
    with pytest.raises(ManifestError, match=r"^input\.uri: ") as caught:
        rows_over("s3://KEYID:topsecret@bucket/a.jsonl")
    assert "topsecret" not in str(caught.value)
