"""Runs that need no cluster, and how an end becomes an exit code."""

import pytest

import jobs.driver.run
from jobs.driver import run_job
from jobs.driver.result import EXIT_CODES, Outcome, RunResult
from jobs.progress import NoProgress
from manifests.errors import DamagedError
from manifests.keys import commit_key
from manifests.protocol import read_seal, seal_job
from tests.manifests.builders import StoredJob


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(cluster: object) -> None:
        raise AssertionError("a cluster was started")

    monkeypatch.setattr(jobs.driver.run, "ray_cluster", start)


def run(job: StoredJob) -> RunResult:
    return run_job(job.store, job.plan, job.plan.job, NoProgress(), work="null")


def commit_all(job: StoredJob) -> None:
    for shard in job.plan.shards:
        job.commit(shard.shard)


def test_a_sealed_job_starts_nothing(job: StoredJob) -> None:
    commit_all(job)
    seal = seal_job(job.store, job.plan)
    result = run(job)
    assert (result.outcome, result.exit_code) == ("complete", 0)
    assert (result.num_committed, result.num_before, result.seal) == (4, 4, seal)


def test_a_job_that_lacks_only_its_seal_is_sealed_without_a_cluster(job: StoredJob) -> None:
    commit_all(job)
    result = run(job)
    assert result.outcome == "sealed"
    assert read_seal(job.store) == result.seal


def test_a_damaged_record_stops_the_run_by_name(job: StoredJob) -> None:
    job.commit(0)
    job.path(commit_key(0)).write_bytes(b"{}")
    with pytest.raises(DamagedError, match=commit_key(0)):
        run(job)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [("complete", 0), ("sealed", 0), ("failed", 1), ("drained", 3), ("cancelled", 130)],
)
def test_exit_codes(outcome: Outcome, code: int) -> None:
    assert RunResult(outcome=outcome).exit_code == code
    assert len(EXIT_CODES) == 5
