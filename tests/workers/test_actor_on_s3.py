"""What a worker says before it loads anything, where its way to S3 is not the driver's."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.access import open_access
from manifests.plan import plan_hash, write_plan
from manifests.store import Store, open_store
from tests.manifests.builders import StoredJob, make_job
from tests.s3_server import CANARY_KEY_ID, CANARY_SECRET
from workers.actor import Worker, WorkerConfig
from workers.attempt import ShardOrder

pytestmark = pytest.mark.s3


@pytest.fixture
def store(s3_bucket: str) -> Store:
    """Where the job is."""
    return open_store(f"s3://{s3_bucket}/job")


@pytest.fixture
def job(tmp_path: Path, store: Store) -> StoredJob:
    """A job without a model, planned in S3."""
    job = make_job(tmp_path, work="null")
    for key in job.store.list("input/"):
        store.put_file_if_absent(key, job.path(key))
    write_plan(store, job.plan)
    return job


@pytest.fixture
def config(job: StoredJob, store: Store) -> WorkerConfig:
    """What the driver tells a worker."""
    return WorkerConfig(
        name="worker-0001",
        store_uri=store.uri,
        plan_sha256=plan_hash(job.plan),
        job_json=job.plan.job.model_dump_json(),
        nonce=open_access(store),
        drafter_files=(),
    )


def test_a_worker_with_access_reads_staged_rows_and_commits(
    config: WorkerConfig, store: Store
) -> None:
    worker = Worker(config)
    assert worker.start().refusal is None
    try:
        outcomes = [worker.run_shard(ShardOrder(shard=shard)) for shard in (0, 1)]
        assert [outcome.status for outcome in outcomes] == ["committed"] * 2
    finally:
        worker.stop()
    assert len(store.list("commits/")) == len(store.list("data/")) == 2


def test_a_worker_without_credentials_is_refused_by_host_and_place(
    config: WorkerConfig, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    refusal = Worker(config).start().refusal or ""
    assert f"worker worker-0001 on {os.uname().nodename} cannot read {store.uri}" in refusal
    assert "there are no credentials" in refusal
    assert CANARY_KEY_ID not in refusal
    assert CANARY_SECRET not in refusal


def test_a_worker_whose_prefix_is_another_is_refused_by_place(
    config: WorkerConfig, s3_bucket: str
) -> None:
    other = replace(config, store_uri=f"s3://{s3_bucket}/another")
    refusal = Worker(other).start().refusal or ""
    assert f"sees another s3://{s3_bucket}/another than the driver" in refusal
