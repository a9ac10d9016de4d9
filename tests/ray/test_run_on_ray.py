"""Whole runs on a real cluster, workers killed and frozen included; no model is needed."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psutil
import pytest

import jobs.driver.run
from jobs.driver.errors import RefusedWorkerError
from manifests.job_running import Retry
from manifests.journal import read_failures
from manifests.keys import commit_key
from tests.jobs.driver.fakes import FakeSink
from tests.manifests.builders import StoredJob
from tests.ray.conftest import Run
from tests.ray.gates import GateFolder
from tests.ray.outputs import assert_whole
from workers.environment import report_environment

pytestmark = pytest.mark.ray


@pytest.mark.parametrize("workers", [1, 2])
def test_all_shards_are_committed_and_sealed(run: Run, job: StoredJob, workers: int) -> None:
    result = run(workers=workers)
    assert (result.outcome, result.num_committed) == ("sealed", 6)
    assert_whole(job)


def test_a_worker_killed_in_mid_shard_is_replaced_and_nothing_is_lost_or_doubled(
    run: Run, job: StoredJob, gate: GateFolder, sink: FakeSink
) -> None:
    gate.hold(2, 1)

    def kill() -> None:
        os.kill(gate.wait_until_reached(2, 1), signal.SIGKILL)
        gate.open(2, 1)

    with ThreadPoolExecutor(1) as background:
        killed = background.submit(kill)
        result = run()
        killed.result()
    assert result.outcome == "sealed", sink.messages
    assert_whole(job)
    assert "worker-0001 is gone" in "\n".join(sink.messages)
    failures = read_failures(job.store)
    assert 2 in {failure.shard for failure in failures}
    assert {failure.kind for failure in failures} == {"rows"}


def test_a_frozen_worker_is_ended_and_replaced(
    run: Run, job: StoredJob, gate: GateFolder, sink: FakeSink
) -> None:
    gate.hold(0, 0)
    frozen = []

    def freeze() -> None:
        frozen.append(gate.wait_until_reached(0, 0))
        os.kill(frozen[0], signal.SIGSTOP)
        gate.open(0, 0)

    with ThreadPoolExecutor(1) as background:
        done = background.submit(freeze)
        result = run(retry=Retry(lease_s=5.0))
        done.result()
    assert result.outcome == "sealed", sink.messages
    assert_whole(job)
    assert "did not answer within 5 s" in "\n".join(sink.messages)
    assert {failure.kind for failure in read_failures(job.store)} == {"infrastructure"}
    # At once, and not when the cluster ends: a frozen process would keep its place.
    assert not psutil.pid_exists(frozen[0])


def test_a_worker_with_other_versions_is_refused_in_one_sentence(
    run: Run, job: StoredJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = report_environment()
    other = replace(mine, versions=mine.versions | {"torch": "0.0"})
    monkeypatch.setattr(jobs.driver.run, "report_environment", lambda: other)
    with pytest.raises(RefusedWorkerError) as caught:
        run()
    assert str(caught.value).endswith("install the same versions on every node")
    assert "runs torch" in str(caught.value)
    assert job.store.list(commit_key(0)) == []
