"""Submitting twice starts a job once: decisions and words, over a job server that remembers."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from jobs.errors import JobError
from jobs.job_file import load_job
from jobs.submitting import (
    attempts_of,
    by_hand,
    changed_settings,
    driver_log,
    entrypoint_of,
    is_exposed,
    submission_id,
    submit,
)
from tests.jobs.support import prompts, write_job

JOB = "0123456789abcdef"
ENTRYPOINT = "spotbatch run /out"


@dataclass(slots=True)
class FakeServer:
    """A job server; `taken` are ids that another submitter takes between looking and asking."""

    known: dict[str, str] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    is_blind: bool = False
    address: str = "http://head:8265"

    def statuses(self) -> Mapping[str, str]:
        return {} if self.is_blind else dict(self.known)

    def submit(self, submission: str, *, entrypoint: str, metadata: Mapping[str, str]) -> bool:
        assert (entrypoint, metadata) == (ENTRYPOINT, {"spotbatch_job": JOB})
        if submission in self.taken:
            self.known[submission] = "PENDING"
        is_new = submission not in self.known
        self.known.setdefault(submission, "PENDING")
        return is_new

    def log(self, submission: str) -> str:
        return f"log of {submission}"


def test_the_first_submission_is_attempt_one() -> None:
    server = FakeServer()
    made = submit(server, job_id=JOB, entrypoint=ENTRYPOINT)
    assert (made.id, made.is_new) == (f"spotbatch-{JOB}-a1", True)


@pytest.mark.parametrize("status", ["PENDING", "RUNNING"])
def test_a_driver_that_runs_is_attached_to(status: str) -> None:
    server = FakeServer({submission_id(JOB, 2): status, submission_id(JOB, 1): "FAILED"})
    made = submit(server, job_id=JOB, entrypoint=ENTRYPOINT)
    assert (made.id, made.is_new) == (submission_id(JOB, 2), False)
    assert len(server.known) == 2


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "STOPPED"])
def test_a_driver_that_ended_is_followed_by_the_next_attempt(status: str) -> None:
    server = FakeServer({submission_id(JOB, 9): status, submission_id(JOB, 10): status})
    assert submit(server, job_id=JOB, entrypoint=ENTRYPOINT).id == submission_id(JOB, 11)


def test_two_submitters_at_once_start_one_driver() -> None:
    server = FakeServer(taken=[submission_id(JOB, 1)])
    made = submit(server, job_id=JOB, entrypoint=ENTRYPOINT)
    assert (made.id, made.is_new) == (submission_id(JOB, 1), False)


def test_a_server_that_takes_nothing_is_given_up_on() -> None:
    server = FakeServer({submission_id(JOB, 1): "RUNNING"}, is_blind=True)
    with pytest.raises(JobError, match="takes no driver"):
        submit(server, job_id=JOB, entrypoint=ENTRYPOINT)


def test_submissions_of_other_jobs_are_not_ours() -> None:
    others = ["raysubmit_x", f"spotbatch-{JOB}-a0", f"spotbatch-{JOB}-a1x", "spotbatch-f-a1"]
    assert attempts_of(JOB, dict.fromkeys(others, "RUNNING")) == {}


def test_the_log_is_that_of_the_last_driver() -> None:
    server = FakeServer({submission_id(JOB, 2): "FAILED", submission_id(JOB, 1): "FAILED"})
    assert driver_log(server, JOB) == f"log of {submission_id(JOB, 2)}"
    with pytest.raises(JobError, match="knows no driver of job"):
        driver_log(FakeServer(), JOB)


def test_what_an_override_changed_is_said_to_the_driver_and_survives_a_shell(
    tmp_path: Path,
) -> None:
    path = write_job(tmp_path, rows=prompts(1))
    overrides = ("cluster.workers=7", "retry.attempts=2", "cluster.address=x:1")
    settings = changed_settings(load_job(path), load_job(path, overrides))
    assert settings == ["cluster.workers=7", "retry.attempts=2"]
    words = shlex.split(entrypoint_of("/o u'$t", settings=settings))
    assert words == [
        *("spotbatch", "run", "/o u'$t", "--set", "cluster.address=auto"),
        *("--set", "cluster.workers=7", "--set", "retry.attempts=2"),
    ]
    assert load_job(path, settings).cluster.workers == 7


def test_the_command_by_hand_is_rays_own() -> None:
    made = submit(FakeServer(), job_id=JOB, entrypoint=ENTRYPOINT)
    assert by_hand("http://head:8265", made) == (
        f"ray job submit --address http://head:8265 --submission-id spotbatch-{JOB}-a1 --no-wait "
        "-- spotbatch run /out"
    )


@pytest.mark.parametrize(
    ("address", "environment", "exposed"),
    [
        ("http://10.0.0.7:8265", {}, True),
        ("http://10.0.0.7:8265", {"RAY_AUTH_MODE": "token"}, False),
        ("http://10.0.0.7:8265", {"RAY_AUTH_MODE": "disabled"}, True),
        ("http://127.0.0.1:8265", {}, False),
        ("http://[::1]:8265", {}, False),
    ],
)
def test_a_network_without_a_token_is_noticed(
    address: str, environment: dict[str, str], exposed: bool
) -> None:
    assert is_exposed(address, environment=environment) == exposed
