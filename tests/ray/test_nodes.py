"""Several nodes: one goes without a word, one drains first, one computes other bits."""

import importlib
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest
import ray

from jobs.driver import RunResult, run_job
from jobs.driver.ledger import Ledger
from jobs.driver.pool import RayPool
from jobs.driver.processes import kill_if_here
from jobs.planning import plan_job
from manifests.job import JobSpec
from manifests.job_running import Cluster, Retry
from manifests.journal import read_failures
from manifests.keys import commit_prefix
from manifests.protocol import read_record
from manifests.records import Seal
from tests.jobs.driver.fakes import FakeSink
from tests.jobs.support import write_rows
from tests.manifests.builders import StoredJob, make_job
from tests.ray.gates import GateFolder
from tests.ray.outputs import assert_same_outputs, assert_whole
from tests.twins import write_sdar_twin
from tests.workers.conditions import wait_for
from workers.environment import ProcessIdentity

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]
NODE: dict[str, Any] = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 128 * 1024 * 1024}
OTHER_BITS = {"ATEN_CPU_CAPABILITY": "default"}  # instructions that every processor has


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without places for workers; tests add nodes and take them away."""
    from ray.cluster_utils import Cluster as Nodes

    nodes = Nodes(
        initialize_head=True,
        connect=False,
        head_node_args=NODE | {"num_cpus": 0, "include_dashboard": False},
    )
    yield nodes
    nodes.shutdown()


def run(job: StoredJob, cluster: Any, sink: FakeSink, *, workers: int = 1) -> RunResult:
    update = {"cluster": Cluster(address=cluster.address, workers=workers), "retry": Retry()}
    return run_job(job.store, job.plan, job.plan.job.model_copy(update=update), sink)


def node_of(pid: int, nodes: list[Any]) -> Any:
    """The node whose raylet is an ancestor of the process."""
    ancestors = {process.pid for process in psutil.Process(pid).parents()}
    for node in nodes:
        if node.all_processes["raylet"][0].process.pid in ancestors:
            return node
    raise AssertionError(f"process {pid} is of none of the nodes")


def test_a_node_that_goes_is_nobodys_fault_and_its_shards_are_done_elsewhere(
    cluster: Any, job: StoredJob, gate: GateFolder, sink: FakeSink, tmp_path: Path
) -> None:
    nodes = [cluster.add_node(**NODE) for _ in range(2)]  # Ray adds none outside the main thread
    gate.hold(0, 0)

    def take_away() -> None:
        pid = gate.wait_until_reached(0, 0)
        held, node = psutil.Process(pid), node_of(pid, nodes)
        cluster.remove_node(node, allow_graceful=False)
        nodes.remove(node)
        psutil.wait_procs([held], timeout=120)  # it outlives its node for a moment
        gate.open(0, 0)

    with ThreadPoolExecutor(1) as background:
        taken = background.submit(take_away)
        result = run(job, cluster, sink)
        taken.result()
    cluster.remove_node(nodes[0], allow_graceful=False)
    assert result.outcome == "sealed", sink.messages
    assert_whole(job)
    assert {failure.kind for failure in read_failures(job.store)} == {"infrastructure"}
    assert_same_outputs(job, make_job(tmp_path / "undisturbed", counts=(3,) * 6, work="null"))


def test_a_node_that_drains_gets_no_more_work_and_may_then_be_killed(
    cluster: Any, job: StoredJob, gate: GateFolder, sink: FakeSink, tmp_path: Path
) -> None:
    nodes = [cluster.add_node(**NODE) for _ in range(2)]
    gate.hold(0, 0)

    def drain_then_kill() -> None:
        pid = gate.wait_until_reached(0, 0)
        node = node_of(pid, nodes)
        drain(cluster, node)
        psutil.wait_procs([psutil.Process(pid)], timeout=120)  # the driver ends it: no time is left
        cluster.remove_node(node, allow_graceful=False)
        nodes.remove(node)
        gate.open(0, 0)

    with ThreadPoolExecutor(1) as background:
        drained = background.submit(drain_then_kill)
        result = run(job, cluster, sink)
        drained.result()
    cluster.remove_node(nodes[0], allow_graceful=False)
    assert result.outcome == "sealed", sink.messages
    assert "its node drains" in "\n".join(sink.messages)
    assert {failure.kind for failure in read_failures(job.store)} == {"infrastructure"}
    assert_whole(job)
    assert_same_outputs(job, make_job(tmp_path / "undisturbed", counts=(3,) * 6, work="null"))


def drain(cluster: Any, node: Any) -> None:
    """Tell Ray that the node will be preempted in a few seconds, as a cloud's notice does."""
    from ray.core.generated.autoscaler_pb2 import DrainNodeReason

    raylet: Any = importlib.import_module("ray._raylet")
    is_accepted, message = raylet.GcsClient(address=cluster.address).drain_node(
        node.node_id,
        DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION"),
        "preempted on purpose",
        int((time.time() + 5.0) * 1000),
    )
    assert is_accepted, message


def test_a_node_with_another_instruction_set_is_refused_by_name(
    cluster: Any, gate: GateFolder, sink: FakeSink, tmp_path: Path
) -> None:
    gate.hold(0, 0)  # the job must not be over before the second worker is there
    node = cluster.add_node(**NODE)
    other = cluster.add_node(**NODE, env_vars=OTHER_BITS)
    write_sdar_twin(tmp_path / "twin")
    write_rows(tmp_path / "prompts.jsonl", [{"prompt": f"say {i}"} for i in range(8)])
    spec = JobSpec.model_validate(
        {
            "input": {"uri": str(tmp_path / "prompts.jsonl")},
            "target": {"path": str(tmp_path / "twin")},
            "output": {"uri": str(tmp_path / "out")},
            "decode": {"max_tokens": 12},
            "shards": {"rows": 1},
            "cluster": {"address": cluster.address, "workers": 2},
        }
    )
    planned = plan_job(spec)

    def go_on_when_refused() -> None:
        wait_for(lambda: bool(refusals(sink)), what="a refusal of one node's worker")
        gate.open(0, 0)

    with ThreadPoolExecutor(1) as background:
        background.submit(go_on_when_refused)
        result = run_job(planned.store, planned.plan, spec, sink)
    for added in (node, other):
        cluster.remove_node(added, allow_graceful=False)
    assert result.outcome == "sealed"
    assert "but the job was begun with" in refusals(sink)[0]
    assert len(planned.store.list(commit_prefix())) == 8


def refusals(sink: FakeSink) -> list[str]:
    """What was said of workers with another instruction set."""
    return [text for text in sink.messages if "has instruction_set" in text]


def test_a_frozen_worker_is_overtaken_while_it_is_stopped_and_its_thaw_changes_nothing(
    cluster: Any,
    job: StoredJob,
    gate: GateFolder,
    sink: FakeSink,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on another host: the driver cannot end the process itself, and Ray is not heard."""
    frozen: list[int] = []  # its process id
    unheard: list[Any] = []  # kept: Ray also ends an actor that nobody refers to any more
    kill, kill_actor = RayPool.kill, ray.kill

    def end_unless_frozen(process: ProcessIdentity) -> None:
        # A worker that is only slow must go as ever: it would keep its place, and none is spare.
        if process.pid not in frozen:
            kill_actor(unheard.pop())
            kill_if_here(process)

    def kill_from_afar(pool: RayPool, worker: str) -> None:
        with monkeypatch.context() as there:
            there.setattr("ray.kill", lambda actor, no_restart: unheard.append(actor))
            there.setattr("jobs.driver.pool.kill_if_here", end_unless_frozen)
            kill(pool, worker)

    monkeypatch.setattr(RayPool, "kill", kill_from_afar)
    is_thawed = Event()
    seal = Ledger.seal

    def seal_after_the_thaw(ledger: Ledger) -> Seal:
        assert is_thawed.wait(timeout=120)  # the end of the run would end the frozen process
        return seal(ledger)

    monkeypatch.setattr(Ledger, "seal", seal_after_the_thaw)
    nodes = [cluster.add_node(**NODE), cluster.add_node(**NODE)]
    gate.hold(0, 0)
    states: list[str] = []

    def freeze_and_thaw() -> None:
        process = psutil.Process(gate.wait_until_reached(0, 0))
        frozen.append(process.pid)
        process.send_signal(signal.SIGSTOP)
        gate.open(0, 0)
        wait_until_committed(job, 0)
        states.append(process.status())
        process.send_signal(signal.SIGCONT)
        is_thawed.set()

    with ThreadPoolExecutor(1) as background:
        thawed = background.submit(freeze_and_thaw)
        update = {
            "cluster": Cluster(address=cluster.address, workers=2),
            "retry": Retry(lease_s=5.0),
        }
        spec = job.plan.job.model_copy(update=update)
        result = run_job(job.store, job.plan, spec, sink)
        thawed.result()
    for node in nodes:
        cluster.remove_node(node, allow_graceful=False)
    assert result.outcome == "sealed", sink.messages
    assert states == ["stopped"]
    assert unheard
    assert "did not answer within 5 s" in "\n".join(sink.messages)
    assert_whole(job)
    assert_same_outputs(job, make_job(tmp_path / "undisturbed", counts=(3,) * 6, work="null"))


def wait_until_committed(job: StoredJob, shard: int) -> None:
    wait_for(
        lambda: read_record(job.store, job.plan, shard) is not None,
        what=f"the commit of shard {shard}",
    )
