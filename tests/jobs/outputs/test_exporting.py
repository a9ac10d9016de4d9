"""Exports as OpenAI batch output: what counts and nothing else, once, in a clean place."""

import json
from pathlib import Path

import pytest

from jobs.errors import JobError
from jobs.exporting import export_job
from jobs.outputs.exporting import export_openai
from jobs.reading import OpenJob
from manifests.errors import DamagedError
from manifests.export import SUCCESS_KEY
from manifests.store import LocalStore
from tests.cli.support import spotbatch
from tests.jobs.support import finished_job, plant_loser, prompts


@pytest.fixture
def job(tmp_path: Path) -> OpenJob:
    """A complete job with an error row, and a file that lost its race."""
    job = finished_job(tmp_path, rows=[*prompts(5), {"id": "bad", "prompt": ""}])
    plant_loser(job)
    return job


def ids(path: Path) -> list[str]:
    return [json.loads(line)["custom_id"] for line in path.read_text().splitlines()]


def test_answers_and_errors_are_two_files_with_every_row_once(job: OpenJob, tmp_path: Path) -> None:
    result = export_openai(job, LocalStore(tmp_path / "clean"))
    answers, errors = (tmp_path / "clean" / file.key for file in result.export.files)
    assert (ids(answers), ids(errors)) == ([f"r{i}" for i in range(5)], ["bad"])
    assert [file.rows for file in result.export.files] == [5, 1]
    assert len(list((tmp_path / "clean").iterdir())) == 3


def test_an_export_is_made_once(job: OpenJob, tmp_path: Path) -> None:
    first = export_openai(job, LocalStore(tmp_path / "clean"))
    again = export_openai(job, LocalStore(tmp_path / "clean"))
    assert (first.num_written, again.num_written) == (2, 0)
    assert again.export == first.export


def test_an_interrupted_export_goes_on(job: OpenJob, tmp_path: Path) -> None:
    first = export_openai(job, LocalStore(tmp_path / "clean"))
    (tmp_path / "clean" / SUCCESS_KEY).unlink()
    (tmp_path / "clean" / first.export.files[1].key).unlink()
    assert export_openai(job, LocalStore(tmp_path / "clean")).num_written == 1


def test_a_file_with_other_bytes_is_damage(job: OpenJob, tmp_path: Path) -> None:
    first = export_openai(job, LocalStore(tmp_path / "clean"))
    (tmp_path / "clean" / SUCCESS_KEY).unlink()
    (tmp_path / "clean" / first.export.files[0].key).write_text("{}\n")
    with pytest.raises(DamagedError, match="other bytes than this export; delete it"):
        export_openai(job, LocalStore(tmp_path / "clean"))


def test_a_place_with_another_export_is_refused(job: OpenJob, tmp_path: Path) -> None:
    export_job(job, LocalStore(tmp_path / "clean"))
    with pytest.raises(JobError, match="give an empty place"):
        export_openai(job, LocalStore(tmp_path / "clean"))


def test_the_command_prints_the_files(job: OpenJob, tmp_path: Path) -> None:
    arguments = ("export", job.store.uri, tmp_path / "clean", "--format", "openai")
    result = spotbatch(*arguments)
    assert result.exit_code == 0
    paths = [Path(line) for line in result.stdout.splitlines()]
    assert ids(paths[1]) == ["bad"]
    text = spotbatch(*arguments, "--rows-per-file", "3")
    assert text.exit_code == 2
    assert "no effect with --format openai" in text.stderr
