"""A job under an S3 prefix on a real local Ray: begun, resumed by another driver, then verified."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli.group import cli
from manifests.access import open_access
from manifests.plan import plan_hash, write_plan
from manifests.protocol import read_seal
from manifests.store import Store, open_store
from manifests.verification import verify_structure
from tests.manifests.builders import StoredJob, make_job
from tests.ray import driver_process
from tests.s3_server import CANARY_KEY_ID, CANARY_SECRET
from workers.actor import Worker, WorkerConfig
from workers.attempt import ShardOrder

pytestmark = [pytest.mark.s3, pytest.mark.ray, pytest.mark.timeout(300)]


@pytest.fixture
def job(tmp_path: Path) -> StoredJob:
    """Four shards of two rows, two samples each; no model is needed."""
    return make_job(tmp_path, counts=(2,) * 4, work="null")


@pytest.fixture
def store(s3_bucket: str, job: StoredJob) -> Store:
    """The job, planned in S3, with one shard committed by an earlier run."""
    store = open_store(f"s3://{s3_bucket}/jobs/null")
    for key in job.store.list("input/"):
        store.put_file_if_absent(key, job.path(key))
    plan = write_plan(store, job.plan)
    worker = Worker(
        WorkerConfig(
            name="worker-0001",
            store_uri=store.uri,
            plan_sha256=plan_hash(plan),
            job_json=plan.job.model_dump_json(),
            nonce=open_access(store),
            drafter_files=(),
        )
    )
    assert worker.start().refusal is None
    assert worker.run_shard(ShardOrder(shard=0)).status == "committed"
    worker.stop()
    return store


def test_a_job_in_s3_is_finished_by_another_driver_and_says_no_secret(store: Store) -> None:
    driver = subprocess.run(
        driver_process.command(store.uri, cluster={"workers": 1}),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert driver.returncode == 0, driver.stderr
    result = json.loads(driver.stdout.splitlines()[-1])
    assert (result["outcome"], result["before"]) == ("sealed", 1)
    assert verify_structure(store) == []

    seal = read_seal(store)
    assert seal is not None
    files = CliRunner().invoke(cli, ["files", store.uri, "--absolute"]).stdout.split()
    assert files == [f"{store.uri}/{shard.data_key}" for shard in seal.shards]

    assert len(store.list("access/")) == 2  # of the run before, which was not ended by a driver
    stored = b"".join(store.get(key) for key in store.list(""))
    for secret in (CANARY_SECRET, CANARY_KEY_ID):
        assert secret not in driver.stdout + driver.stderr
        assert secret.encode() not in stored
