"""Drivers as processes on one cluster: stopped, killed in every phase, doubled and taken over."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from manifests.journal import read_presences
from manifests.protocol import read_records
from tests.cli.support import spotbatch
from tests.manifests.builders import StoredJob, make_job
from tests.ray import driver_process
from tests.ray.conftest import Run
from tests.ray.gates import GateFolder
from tests.ray.hooking import Hooks
from tests.ray.outputs import assert_same_outputs, assert_whole
from tests.workers.conditions import wait_for

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]
LIMIT_S = 240.0
Driver = subprocess.Popen[str]
Start = Callable[..., Driver]


@pytest.fixture
def hooks(tmp_path: Path) -> Hooks:
    """For workers of drivers that are started here."""
    folder = tmp_path / "hooks"
    folder.mkdir()
    return Hooks(folder)


@pytest.fixture
def start(job: StoredJob, cluster_address: str, hooks: Hooks, tmp_path: Path) -> Iterator[Start]:
    """Drivers with one worker on the shared cluster, each the leader of a process group."""
    drivers: list[Driver] = []

    def start(**settings: Any) -> Driver:
        log = (tmp_path / f"driver-{len(drivers)}.log").open("w")
        cluster = {"address": cluster_address, "workers": 1, "env": hooks.env}
        driver = subprocess.Popen(
            driver_process.command(job.store.uri, cluster=cluster, **settings),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            process_group=0,
        )
        log.close()
        drivers.append(driver)
        return driver

    yield start
    for driver in drivers:
        driver.kill()
        driver.wait()
        assert driver.stdout is not None
        driver.stdout.close()


def said(tmp_path: Path, *, driver: int = 0) -> str:
    return (tmp_path / f"driver-{driver}.log").read_text()


def finish(driver: Driver) -> tuple[int, str]:
    output, _ = driver.communicate(timeout=LIMIT_S)
    return driver.returncode, output


def assert_finished_by(run: Run, job: StoredJob, tmp_path: Path) -> None:
    """A later run ends the job, and its outputs are those of a job without trouble."""
    before = read_records(job.store, job.plan)
    result = run()
    assert (result.outcome, result.num_before) == ("sealed", len(before))
    after = read_records(job.store, job.plan)
    assert {shard: after[shard] for shard in before} == before
    assert_whole(job)
    assert_same_outputs(job, make_job(tmp_path / "undisturbed", counts=(3,) * 6, work="null"))


def hold_all(job: StoredJob, gate: GateFolder) -> Callable[[], bool]:
    """Hold every shard at its first row; whether a worker has come to one."""
    for shard in job.plan.shards:
        gate.hold(shard.shard, 0)
    return lambda: any(gate.is_reached(shard.shard, 0) for shard in job.plan.shards)


def open_all(job: StoredJob, gate: GateFolder) -> None:
    for shard in job.plan.shards:
        gate.open(shard.shard, 0)


def test_a_termination_drains_and_a_later_run_finishes(
    start: Start, run: Run, job: StoredJob, gate: GateFolder, tmp_path: Path
) -> None:
    is_held = hold_all(job, gate)
    driver = start()
    wait_for(is_held, what="a held worker", limit_s=LIMIT_S)
    driver.send_signal(signal.SIGTERM)
    wait_for(lambda: "draining" in said(tmp_path), what="the drain")
    driver.send_signal(signal.SIGTERM)  # once more changes nothing
    open_all(job, gate)
    assert finish(driver)[0] == 3, said(tmp_path)
    assert 0 < len(read_records(job.store, job.plan)) < len(job.plan.shards)
    assert_finished_by(run, job, tmp_path)


def test_two_interrupts_of_the_group_cancel_at_once(
    start: Start, job: StoredJob, gate: GateFolder, tmp_path: Path
) -> None:
    is_held = hold_all(job, gate)
    driver = start()
    wait_for(is_held, what="a held worker", limit_s=LIMIT_S)
    os.killpg(driver.pid, signal.SIGINT)
    wait_for(lambda: "draining" in said(tmp_path), what="the drain")
    os.killpg(driver.pid, signal.SIGINT)
    assert finish(driver)[0] == 130, said(tmp_path)
    assert read_presences(job.store)[0].finished


@pytest.mark.parametrize(("verb", "code"), [("drain", 3), ("cancel", 130)])
def test_a_driver_stops_when_another_process_asks_it_through_storage(
    start: Start, job: StoredJob, gate: GateFolder, tmp_path: Path, verb: str, code: int
) -> None:
    is_held = hold_all(job, gate)
    driver = start()
    wait_for(is_held, what="a held worker", limit_s=LIMIT_S)
    result = spotbatch(verb, job.store.uri)
    assert result.exit_code == 0, result.output
    if verb == "drain":
        wait_for(lambda: "draining" in said(tmp_path), what="the drain")
        open_all(job, gate)
    assert finish(driver)[0] == code, said(tmp_path)
    again = spotbatch(verb, job.store.uri)
    assert again.exit_code == 2
    assert "no driver of this job runs" in again.stderr


def test_a_driver_killed_before_any_worker_is_ready_costs_nothing(
    start: Start, run: Run, job: StoredJob, tmp_path: Path
) -> None:
    driver = start()
    wait_for(lambda: bool(read_presences(job.store)), what="the driver's presence")
    driver.kill()
    driver.communicate()
    assert_finished_by(run, job, tmp_path)


def test_a_driver_killed_while_rows_are_decoded_loses_no_commit(
    start: Start, run: Run, job: StoredJob, gate: GateFolder, tmp_path: Path
) -> None:
    gate.hold(3, 1)
    driver = start()
    wait_for(lambda: gate.is_reached(3, 1), what="a held worker", limit_s=LIMIT_S)
    driver.kill()
    driver.communicate()
    gate.open(3, 1)
    assert_finished_by(run, job, tmp_path)


def test_a_driver_killed_while_a_shard_is_published_loses_no_commit(
    start: Start, run: Run, job: StoredJob, hooks: Hooks, tmp_path: Path
) -> None:
    hooks.hold_commits()
    driver = start()
    hooks.wait_until_commits_are_held()
    driver.kill()
    driver.communicate()
    hooks.release_commits()
    assert_finished_by(run, job, tmp_path)


def test_a_second_driver_is_told_of_the_first_and_may_take_over(
    start: Start, job: StoredJob, gate: GateFolder, tmp_path: Path
) -> None:
    is_held = hold_all(job, gate)
    first = start()
    wait_for(is_held, what="a held worker", limit_s=LIMIT_S)
    second = start()
    assert finish(second)[0] == 2
    assert "runs this job already" in said(tmp_path, driver=1)
    third = start(take_over=True)
    assert finish(first)[0] == 130, said(tmp_path)
    open_all(job, gate)
    assert finish(third)[0] == 0, said(tmp_path, driver=2)
    assert_whole(job)


def test_two_drivers_at_once_are_safe(
    start: Start, job: StoredJob, hooks: Hooks, tmp_path: Path
) -> None:
    """Both look for rivals before either has told of itself: a race that storage decides."""
    hooks.hold_commits()
    drivers = [start(no_rivals=True), start(no_rivals=True)]
    hooks.wait_until_commits_are_held()
    hooks.release_commits()
    assert [finish(driver)[0] for driver in drivers] == [0, 0], said(tmp_path)
    assert_whole(job)
    assert_same_outputs(job, make_job(tmp_path / "undisturbed", counts=(3,) * 6, work="null"))
