"""Revisions on a real cluster: one, two at the same time, and one whose driver is killed."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from manifests.open_revision import open_revision
from manifests.protocol import read_seals
from manifests.records import Seal
from tests.manifests.builders import StoredJob
from tests.manifests.extending import extend
from tests.manifests.revising import revise
from tests.ray.conftest import Run
from tests.ray.gates import GateFolder
from tests.ray.outputs import assert_whole

pytestmark = pytest.mark.ray
LIMIT_S = 150.0
Driver = subprocess.Popen[str]
Start = Callable[..., Driver]
SPOTBATCH = [sys.executable, "-c", "import spotbatch; spotbatch.main()"]


@pytest.fixture
def start(job: StoredJob, cluster_address: str) -> Iterator[Start]:
    """Retries as processes on the shared cluster."""
    drivers: list[Driver] = []

    def start(*choice: str) -> Driver:
        where = ["--set", f"cluster.address={cluster_address}"]
        driver = subprocess.Popen(
            [*SPOTBATCH, "retry", job.store.uri, *choice, *where],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        drivers.append(driver)
        return driver

    yield start
    for driver in drivers:
        driver.kill()
        driver.communicate()


def attempts_of(seal: Seal) -> list[str]:
    """Data keys by shard."""
    return [sealed.data_key for sealed in seal.shards]


def test_a_run_carries_out_what_was_decided_and_nothing_else(run: Run, job: StoredJob) -> None:
    run()
    revise(job, {1: (0, 2), 4: None})
    result = run(workers=2)
    assert (result.outcome, result.num_shards, result.num_committed) == ("sealed", 2, 2)
    assert_whole(job)
    first, second = (attempts_of(seal) for seal in read_seals(job.store))
    assert [one != other for one, other in zip(first, second, strict=True)] == [
        shard in (1, 4) for shard in range(6)
    ]
    assert run().outcome == "complete"


def test_a_run_decodes_what_was_appended_and_nothing_else(run: Run, job: StoredJob) -> None:
    run()
    grown, _ = extend(job)
    result = run(workers=2)
    assert (result.outcome, result.num_shards, result.num_committed) == ("sealed", 2, 2)
    assert_whole(grown)
    first, second = (attempts_of(seal) for seal in read_seals(job.store))
    assert second[:-2] == first
    assert run().outcome == "complete"


def test_of_two_equal_retries_at_once_one_is_carried_out_once(
    run: Run, job: StoredJob, start: Start, gate: GateFolder
) -> None:
    run()
    gate.hold(1, 1)
    first = start("--shards", "1,3")
    gate.wait_until_reached(1, 1)
    second = start("--shards", "1,3")
    _, told = second.communicate(timeout=LIMIT_S)
    assert second.returncode == 2, told
    assert "runs this job already" in told
    gate.open(1, 1)
    _, said = first.communicate(timeout=LIMIT_S)
    assert first.returncode == 0, said
    assert [seal.revision for seal in read_seals(job.store)] == [0, 1]
    assert_whole(job)


def test_of_two_different_retries_at_once_the_second_is_told_what_the_first_does(
    run: Run, job: StoredJob, start: Start, gate: GateFolder
) -> None:
    run()
    gate.hold(2, 1)
    first = start("--shards", "2")
    gate.wait_until_reached(2, 1)
    second = start("--shards", "0")
    _, told = second.communicate(timeout=LIMIT_S)
    assert second.returncode == 2, told
    assert "revision 1 is open (shards 2)" in told
    # The driver dies; whoever runs the job goes on with its revision.
    first.kill()
    first.communicate()
    gate.open(2, 1)
    assert open_revision(job.store, job.plan) is not None
    assert run().outcome == "sealed"
    assert [seal.revision for seal in read_seals(job.store)] == [0, 1]
    assert_whole(job)
