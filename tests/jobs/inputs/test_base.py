"""Which files can be an input at all."""

from pathlib import Path

import pytest

from jobs.inputs.base import input_path
from manifests.errors import InputError


def test_a_file_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text("{}\n")
    assert input_path(str(path)) == path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent.jsonl", "there is no such file"),
        ("folder", "this is not a file"),
        ("prompts.csv", r"must end in one of \.jsonl, \.ndjson, \.parquet"),
        ("empty.jsonl", "the file is empty"),
    ],
)
def test_an_unusable_file_is_named_with_the_reason(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "prompts.csv").write_text("a,b\n")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(InputError, match=f"^input.uri {tmp_path / name}: .*{words}"):
        input_path(str(tmp_path / name))


def test_a_remote_file_is_refused() -> None:
    with pytest.raises(InputError, match="local files only"):
        input_path("s3://bucket/p.jsonl")
