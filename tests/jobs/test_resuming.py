"""A planned job goes on from its place alone."""

import shutil
from pathlib import Path

import pytest

from jobs.errors import JobError, NoJobError
from jobs.resuming import is_job_uri, planned_and_job
from manifests.errors import FingerprintError, JobFileError
from tests.jobs.support import planned_job, prompts, write_drafter, write_job


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A planned job of which only the output is left."""
    planned_job(tmp_path, rows=prompts(3), settings=["sampling: {n: 2}"])
    (tmp_path / "prompts.jsonl").unlink()
    (tmp_path / "job.yaml").unlink()
    shutil.rmtree(tmp_path / "target")
    return str(tmp_path / "out")


def test_neither_job_file_nor_input_nor_target_is_read_again(place: str) -> None:
    planned, job = planned_and_job(place)
    assert not planned.created
    assert job == planned.plan.job


def test_operational_settings_may_change(place: str) -> None:
    planned, job = planned_and_job(place, ["cluster.workers=5"])
    assert (job.cluster.workers, planned.plan.job.cluster.workers) == (5, 1)


def test_settings_that_decide_the_output_may_not(place: str) -> None:
    with pytest.raises(FingerprintError, match=r"sampling\.n was 2, is 3"):
        planned_and_job(place, ["sampling.n=3"])


def test_the_place_itself_stays(place: str) -> None:
    with pytest.raises(JobError, match=r"leave output\.uri as it is"):
        planned_and_job(place, ["output.uri=/elsewhere"])


def test_another_drafter_is_looked_at(tmp_path: Path) -> None:
    planned_job(tmp_path, rows=prompts(3))
    drafter = write_drafter(tmp_path / "drafter", block_length=99)
    planned, job = planned_and_job(str(tmp_path / "out"), [f"drafter.path={drafter}"])
    assert job.drafter.path == str(drafter)
    assert "trained at block length 99" in planned.warnings[0]
    with pytest.raises(JobFileError):
        planned_and_job(str(tmp_path / "out"), [f"drafter.path={tmp_path}"])


def test_a_job_file_is_planned(tmp_path: Path) -> None:
    path = str(write_job(tmp_path, rows=prompts(3)))
    assert planned_and_job(path)[0].created
    assert not planned_and_job(path)[0].created


def test_a_place_is_a_uri_or_a_directory_with_a_plan(place: str, tmp_path: Path) -> None:
    assert is_job_uri(place)
    assert is_job_uri(f"file://{place}")
    assert is_job_uri("s3://bucket/job")
    assert not is_job_uri(str(tmp_path))
    assert not is_job_uri(str(tmp_path / "nothing.yaml"))


def test_a_uri_without_a_job_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NoJobError, match="there is no job here"):
        planned_and_job(f"file:///{tmp_path}/nowhere/")
