"""The worker as the driver sees it, called directly."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

import workers.actor
from manifests.access import open_access
from manifests.plan import plan_hash
from tests.manifests.builders import StoredJob, make_job
from workers.actor import Heartbeat, Worker, WorkerConfig
from workers.attempt import ShardOrder
from workers.environment import report_environment
from workers.stream import Totals


@pytest.fixture
def job(tmp_path: Path) -> StoredJob:
    """A job without a model."""
    return make_job(tmp_path, work="null")


def config(job: StoredJob, *, plan_sha256: str | None = None) -> WorkerConfig:
    return WorkerConfig(
        name="worker-0001",
        store_uri=job.store.uri,
        plan_sha256=plan_sha256 or plan_hash(job.plan),
        job_json=job.plan.job.model_dump_json(),
        nonce=open_access(job.store),
        drafter_files=(),
    )


@pytest.fixture
def worker(job: StoredJob) -> Iterator[Worker]:
    """A started worker with null work."""
    worker = Worker(config(job))
    assert worker.start().refusal is None
    yield worker
    worker.stop()


def test_it_commits_what_it_is_given(worker: Worker) -> None:
    assert [worker.run_shard(ShardOrder(shard=s)).status for s in (0, 1)] == [
        "committed",
        "committed",
    ]


def test_heartbeats_tell_totals(worker: Worker) -> None:
    assert worker.heartbeat() == Heartbeat(running=(), num_steps=0, totals=Totals())
    worker.run_shard(ShardOrder(shard=1))
    beat = worker.heartbeat()
    assert (beat.running, beat.totals.ok, beat.totals.errors) == ((), 2, 2)


def test_a_worker_that_has_not_started_answers_heartbeats(job: StoredJob) -> None:
    assert Worker(config(job)).heartbeat().num_steps == 0


def test_it_reports_its_environment_first(job: StoredJob) -> None:
    placement = Worker(config(job)).report()
    assert (placement.environment, placement.node) == (report_environment(), "")


def test_another_plan_is_refused(job: StoredJob) -> None:
    refusal = Worker(config(job, plan_sha256="0" * 64)).start().refusal
    assert refusal is not None
    assert "another plan" in refusal


def test_a_job_that_cannot_be_read_is_refused_by_name(job: StoredJob) -> None:
    job.path("plan.json").unlink()
    refusal = Worker(config(job)).start().refusal
    assert refusal is not None
    assert "plan.json" in refusal


def test_a_worker_whose_engine_is_dead_ends_its_process_by_itself(
    job: StoredJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.actor, "LEAVE_S", 0.0)
    left = Event()
    worker = Worker(config(job), leave=left.set)
    assert worker.start().refusal is None
    worker.stop()  # from now on every shard fails as it would with a broken engine
    assert not worker.run_shard(ShardOrder(shard=0)).is_worker_usable
    assert left.wait(20)
