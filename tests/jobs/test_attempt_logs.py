"""Failed attempts: in order of time, with the logs that they left."""

from pathlib import Path

import pytest

from jobs.attempt_logs import failed_attempts
from jobs.reading import OpenJob
from manifests.journal import write_failure
from manifests.keys import log_key
from manifests.records import Failure
from tests.jobs.support import finished_job, prompts


def fail(job: OpenJob, shard: int, *, minute: int, log: bytes | None = None) -> None:
    failure = Failure(
        shard=shard,
        attempt=f"{minute:016x}",
        kind="rows",
        error_class="WorkerLost",
        message="it died",
        worker="w1@h",
        time=f"2025-01-01T00:{minute:02}:00+00:00",
    )
    write_failure(job.store, failure)
    if log is not None:
        job.store.put_if_absent(log_key(shard, failure.attempt), log)


@pytest.fixture
def job(tmp_path: Path) -> OpenJob:
    job = finished_job(tmp_path, rows=prompts(3))
    fail(job, 0, minute=9)
    fail(job, 1, minute=3, log=b"row r2 begins\n\xffend\n")
    return job


def test_attempts_come_in_the_order_of_time_with_their_logs(job: OpenJob) -> None:
    early, late = failed_attempts(job)
    assert early.lines() == [
        "2025-01-01T00:03:00+00:00 shard 1 attempt 0000000000000003 on w1@h: WorkerLost (rows): "
        "it died",
        "  row r2 begins",
        "  \ufffdend",
    ]
    assert (late.failure.shard, late.log) == (0, None)
    assert late.to_json()["error_class"] == "WorkerLost"


def test_shards_can_be_chosen(job: OpenJob) -> None:
    assert [each.failure.shard for each in failed_attempts(job, shards={0})] == [0]
