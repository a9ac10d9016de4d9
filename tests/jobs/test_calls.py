"""The verbs as functions."""

from pathlib import Path
from typing import Any

import pytest

import spotbatch
from jobs.calls import overrides_of
from jobs.driver import RunResult
from manifests.job import JobSpec
from tests.jobs.support import finished_job, prompts, write_job


def test_settings_are_overrides_of_any_type() -> None:
    settings = {"cluster.workers": 4, "decode.stop": ["a"], "drafter.path": None}
    assert overrides_of(settings) == ["cluster.workers=4", 'decode.stop=["a"]', "drafter.path=null"]
    assert overrides_of(None) == []


def test_planning_and_status_need_a_job_file_and_a_place(tmp_path: Path) -> None:
    path = write_job(tmp_path, rows=prompts(3))
    planned = spotbatch.plan(path, {"seed.value": 7})
    assert planned.plan.job.seed.value == 7
    assert spotbatch.status(planned.store.uri).state == "planned"


def test_a_run_is_that_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[JobSpec] = []

    def run_job(store: Any, plan: Any, job: JobSpec, progress: Any, **named: Any) -> RunResult:
        seen.append(job)
        return RunResult(outcome="sealed")

    monkeypatch.setattr("jobs.running.run_job", run_job)
    path = write_job(tmp_path, rows=prompts(3))
    assert spotbatch.run(path, {"cluster.workers": 3}).exit_code == 0
    assert spotbatch.run(tmp_path / "out", {"cluster.workers": 2}).outcome == "sealed"
    assert [job.cluster.workers for job in seen] == [3, 2]


def test_a_complete_job_is_not_submitted(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(3))
    assert spotbatch.submit(job.store.uri, address="http://127.0.0.1:1") is None
