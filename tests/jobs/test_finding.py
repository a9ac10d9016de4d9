"""Which jobs there are below a root."""

from pathlib import Path

import pytest

from jobs.errors import JobError, NoJobError
from jobs.finding import MAX_DEPTH, find_jobs


def make(folder: Path) -> str:
    folder.mkdir(parents=True)
    (folder / "plan.json").touch()
    return str(folder)


def test_jobs_are_found_at_several_depths_and_sorted(tmp_path: Path) -> None:
    made = [make(tmp_path / "b"), make(tmp_path / "a" / "x"), make(tmp_path / "a" / "c" / "y")]
    assert find_jobs(str(tmp_path)) == sorted(made)
    assert find_jobs(f"file://{tmp_path}") == sorted(made)


def test_a_job_itself_is_found_and_its_inside_is_not_searched(tmp_path: Path) -> None:
    job = make(tmp_path / "job")
    make(tmp_path / "job" / "data" / "hidden")
    assert find_jobs(job) == [job]


def test_hidden_folders_links_and_great_depths_are_left_out(tmp_path: Path) -> None:
    make(tmp_path / ".cache" / "job")
    make(tmp_path.joinpath(*"abcdef"[: MAX_DEPTH + 1]))
    (tmp_path / "link").symlink_to(tmp_path)
    assert find_jobs(str(tmp_path)) == []


def test_a_root_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NoJobError, match="there is no such directory"):
        find_jobs(str(tmp_path / "nothing"))


def test_an_object_store_needs_a_bucket() -> None:
    with pytest.raises(JobError, match="name the bucket"):
        find_jobs("s3://")
