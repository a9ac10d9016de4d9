"""Files that a job reads and did not write, on a real server."""

from pathlib import Path

import pytest

from manifests.errors import MissingError
from manifests.job_running import Storage
from manifests.store import open_store
from manifests.store.s3.files import download, find_files, fixed_folder, has_magic, look_up
from manifests.store.s3.files import open_file as open_remote

pytestmark = pytest.mark.s3

STORAGE = Storage()
FIELD = "input.uri"
KEYS = ("in/a.jsonl", "in/b.jsonl", "in/deep/c.jsonl", "in/b.txt", "other/d.jsonl")


@pytest.fixture
def bucket(s3_bucket: str) -> str:
    """A bucket with a few files, each holding its own key."""
    store = open_store(f"s3://{s3_bucket}/root")
    for key in KEYS:
        store.put_if_absent(key, key.encode())
    return f"s3://{s3_bucket}/root"


def _found(uri: str) -> list[str]:
    return [facts.path.partition("/root/")[2] for facts in find_files(uri, STORAGE, field=FIELD)]


def test_a_star_stays_inside_a_part_of_the_name(bucket: str) -> None:
    assert _found(f"{bucket}/in/*.jsonl") == ["in/a.jsonl", "in/b.jsonl"]
    assert _found(f"{bucket}/*/[bd].jsonl") == ["in/b.jsonl", "other/d.jsonl"]


def test_two_stars_cross_parts(bucket: str) -> None:
    assert _found(f"{bucket}/in/**/*.jsonl") == ["in/a.jsonl", "in/b.jsonl", "in/deep/c.jsonl"]


def test_a_folder_is_all_that_is_under_it(bucket: str) -> None:
    assert _found(f"{bucket}/in") == ["in/a.jsonl", "in/b.jsonl", "in/b.txt", "in/deep/c.jsonl"]


def test_a_file_is_looked_up_read_and_fetched(bucket: str, tmp_path: Path) -> None:
    uri = f"{bucket}/in/deep/c.jsonl"
    assert look_up(uri, STORAGE, field=FIELD).bytes == len("in/deep/c.jsonl")
    with open_remote(uri, STORAGE, field=FIELD) as file:
        file.seek(3)
        assert file.read(4) == b"deep"
    download(uri, tmp_path / "c", STORAGE, field=FIELD)
    assert (tmp_path / "c").read_bytes() == b"in/deep/c.jsonl"


def test_a_file_that_is_not_there_is_missing(bucket: str) -> None:
    with pytest.raises(MissingError, match=r"nothing\.jsonl"):
        look_up(f"{bucket}/nothing.jsonl", STORAGE, field=FIELD)


@pytest.mark.parametrize(
    ("uri", "magic", "folder"),
    [
        ("s3://b/a/*.jsonl", True, "s3://b/a"),
        ("s3://b/a/x[01]/y", True, "s3://b/a"),
        ("s3://b/a/file?.jsonl", False, "s3://b/a"),
    ],
)
def test_globs_are_told_from_names(uri: str, magic: bool, folder: str) -> None:
    assert (has_magic(uri), fixed_folder(uri)) == (magic, folder)
