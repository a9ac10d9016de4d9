"""Drivers as processes: killed, interrupted, and started from a folder with packages like ours."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from manifests.protocol import read_records
from tests.manifests.builders import StoredJob
from tests.ray import driver_process
from tests.ray.conftest import Run
from tests.ray.gates import GateFolder
from tests.ray.outputs import assert_whole
from tests.workers.conditions import wait_for

pytestmark = pytest.mark.ray
LIMIT_S = 120.0
Driver = subprocess.Popen[str]
Start = Callable[..., Driver]


@pytest.fixture
def start(job: StoredJob, tmp_path: Path) -> Iterator[Start]:
    """Drivers with a worker and a Ray of their own, each the leader of a process group."""
    drivers: list[Driver] = []

    def start(*, folder: Path = tmp_path) -> Driver:
        driver = subprocess.Popen(
            driver_process.command(job.store.uri, cluster={"workers": 1}),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        drivers.append(driver)
        return driver

    yield start
    for driver in drivers:
        driver.kill()
        driver.communicate()


def finish(driver: Driver) -> dict[str, Any]:
    """The result of a driver that ends well; its stdout holds nothing else."""
    output, errors = driver.communicate(timeout=LIMIT_S)
    assert driver.returncode == 0, errors
    result: dict[str, Any] = json.loads(output)
    return result


def wait_until_held(driver: Driver, gate: GateFolder, *, shards: Iterable[int], row: int) -> None:
    """A worker of the driver is held at one of the shards; a driver that ends before says why."""
    shards = list(shards)
    wait_for(
        lambda: any(gate.is_reached(s, row) for s in shards) or driver.poll() is not None,
        what=f"a worker at row {row} of one of the shards {shards}",
    )
    assert driver.poll() is None, driver.communicate()


def wait_for_records(job: StoredJob, *, num_records: int) -> None:
    wait_for(
        lambda: len(read_records(job.store, job.plan)) >= num_records,
        what=f"{num_records} committed shards",
    )


def end_agents(family: list[psutil.Process]) -> None:
    """Ray's agents, which decode nothing, look for their dead node a minute before they leave."""
    for process in family:
        with suppress(psutil.NoSuchProcess):
            if process.name().endswith("Agent"):
                process.kill()


def test_after_a_killed_driver_only_missing_shards_are_decoded(
    start: Start, run: Run, job: StoredJob, gate: GateFolder
) -> None:
    gate.hold(3, 1)
    driver = start()
    wait_until_held(driver, gate, shards=[3], row=1)
    wait_for_records(job, num_records=2)
    family = psutil.Process(driver.pid).children(recursive=True)
    driver.kill()
    driver.communicate()
    end_agents(family)
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []
    before = read_records(job.store, job.plan)
    assert 3 not in before

    gate.open(3, 1)
    result = run()
    assert (result.outcome, result.num_before) == ("sealed", len(before))
    assert_whole(job)
    after = read_records(job.store, job.plan)
    assert {shard: after[shard] for shard in before} == before


def test_an_interrupt_drains_with_exit_code_3_and_a_later_run_finishes(
    start: Start, run: Run, job: StoredJob, gate: GateFolder
) -> None:
    shards = range(len(job.plan.shards))
    for shard in shards:
        gate.hold(shard, 0)
    driver = start()
    # A worker has two shards, and which one it begins with is not defined.
    wait_until_held(driver, gate, shards=shards, row=0)
    # As a terminal does: Ray's processes are in the group too, and must not die of it.
    os.killpg(driver.pid, signal.SIGINT)
    assert driver.stderr is not None
    wait_for_line(driver, "draining")
    for shard in shards:
        gate.open(shard, 0)
    output, errors = driver.communicate(timeout=LIMIT_S)
    assert driver.returncode == 3, errors
    assert json.loads(output) == {"outcome": "drained", "before": 0}
    drained = read_records(job.store, job.plan)
    assert 0 < len(drained) < len(shards)

    result = run()
    assert (result.outcome, result.num_before) == ("sealed", len(drained))
    assert_whole(job)


def wait_for_line(driver: Driver, start_of_line: str) -> None:
    """Read what the driver says until it says this; the test's time limit bounds the wait."""
    assert driver.stderr is not None
    for line in driver.stderr:
        if line.startswith(start_of_line):
            return
    raise AssertionError(f"the driver never said {start_of_line!r}")


def test_packages_like_ours_in_the_working_directory_are_not_imported(
    start: Start, job: StoredJob, tmp_path: Path
) -> None:
    for package in ("jobs", "workers", "manifests"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise RuntimeError('a foreign package')\n")
    assert finish(start(folder=tmp_path))["outcome"] == "sealed"
    assert_whole(job)
