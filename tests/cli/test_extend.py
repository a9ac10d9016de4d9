"""`spotbatch extend`, as it is typed."""

import json
from pathlib import Path

import pytest

import spotbatch as api
from jobs.driver import RunResult
from jobs.planning import PlannedJob
from jobs.reading import OpenJob, open_job
from manifests.job import JobSpec
from tests.cli.support import complaint, spotbatch
from tests.jobs.growing import ALL, PLANNED, append
from tests.jobs.support import finish, finished_job, planned_job, prompts


@pytest.fixture
def job(tmp_path: Path) -> OpenJob:
    """A complete job of three shards, whose input has four rows more by now."""
    made = finished_job(tmp_path, rows=prompts(PLANNED))
    append(tmp_path, prompts(ALL)[PLANNED:])
    return made


@pytest.mark.parametrize("reference", ["out", "job.yaml"])
def test_appended_rows_are_decoded_by_the_next_run(
    tmp_path: Path, job: OpenJob, monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    result = spotbatch("extend", tmp_path / reference)
    assert (result.exit_code, result.stdout) == (
        0,
        f"4 appended rows become shards 3-5; `spotbatch run {job.store.uri}` decodes them\n",
    )
    status = json.loads(spotbatch("status", job.store.uri, "--json").stdout)
    assert (status["state"], status["missing"], status["appends"]) == ("stopped", "3-5", True)
    assert (status["rows"], status["rows_total"], status["shards_total"]) == (PLANNED, ALL, 6)
    assert "revision         1 (an extension)" in spotbatch("status", job.store.uri).stdout

    def run_here(planned: PlannedJob, job: JobSpec, **options: object) -> RunResult:
        finish(planned)
        return RunResult(outcome="sealed", num_shards=3, num_committed=3)

    monkeypatch.setattr("jobs.running.run_planned", run_here)
    assert spotbatch("run", tmp_path / reference).exit_code == 0
    assert json.loads(spotbatch("stats", job.store.uri, "--json").stdout)["rows"] == ALL
    assert len(spotbatch("files", job.store.uri).stdout.splitlines()) == 6
    assert spotbatch("verify", job.store.uri).exit_code == 0
    (listed,) = json.loads(spotbatch("list", tmp_path, "--json").stdout)["jobs"]
    assert (listed["state"], listed["rows"], listed["shards"]) == ("complete", 9, 6)


def test_a_dry_run_as_json(job: OpenJob) -> None:
    told = json.loads(spotbatch("extend", job.store.uri, "--dry-run", "--json").stdout)
    assert told == {
        "uri": job.store.uri,
        "revision": 1,
        "written": False,
        "open": False,
        "rows": 4,
        "shards": "3-5",
        "rows_total": ALL,
        "shards_total": 6,
        "error_rows": {},
    }
    assert open_job(job.store.uri).plan.rows == PLANNED


def test_rows_that_cannot_be_decoded_are_told_apart(tmp_path: Path, job: OpenJob) -> None:
    append(tmp_path, [{"id": "blank", "prompt": ""}])
    result = spotbatch("extend", job.store.uri, "--dry-run")
    assert result.stderr == "warning: 1 of them cannot be decoded: EmptyPrompt\n"


def test_nothing_appended_is_said_and_is_no_error(job: OpenJob) -> None:
    spotbatch("extend", job.store.uri)
    finish(open_job(job.store.uri))
    result = spotbatch("extend", job.store.uri)
    assert (result.exit_code, result.stdout) == (
        0,
        "no row was appended to the 9 that are planned\n",
    )


def test_what_cannot_be_extended_is_one_sentence(tmp_path: Path) -> None:
    planned_job(tmp_path, rows=prompts(PLANNED))
    assert "only a complete one is extended" in complaint(spotbatch("extend", tmp_path / "out"))


def test_a_job_file_that_was_never_planned_is_one_sentence(tmp_path: Path, job: OpenJob) -> None:
    place = f"output.uri={tmp_path / 'elsewhere'}"
    told = complaint(spotbatch("extend", tmp_path / "job.yaml", "--set", place))
    assert "elsewhere: there is no job here" in told


def test_it_is_a_function_too(tmp_path: Path, job: OpenJob) -> None:
    extended = api.extend(tmp_path / "out", {"cluster.workers": 2})
    assert (extended.revision, extended.rows, extended.open) == (1, 4, True)
