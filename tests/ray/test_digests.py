"""One digest for any workers, batch, threads, budget and crashes: the bundled target on Ray."""

import os
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobs.driver import run_job
from jobs.planning import PlannedJob, plan_job
from jobs.reading import OpenJob
from jobs.stats import job_stats
from manifests.job import JobSpec
from manifests.journal import read_failures
from manifests.protocol import read_records
from manifests.verification import verify_structure
from tests.jobs.driver.fakes import FakeSink
from tests.ray.gates import GateFolder
from tests.workers.conditions import wait_for

pytestmark = [pytest.mark.ray, pytest.mark.models]
COMMAND = Path(sysconfig.get_path("scripts")) / "spotbatch"
NUM_ROWS, SHARD_ROWS = 16, 4
MAX_TOKENS = 32  # a block's length: most samples go on into another block, some end before
BASELINE: dict[str, Any] = {"workers": 1, "batch": 3, "threads": 1, "budget": 8}
GREEDY, SAMPLED, HOT = 0.0, 1.0, 2.0  # only HOT changes most rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What every job here has in common; jobs differ in temperature and in what may not matter."""

    repository: Path
    target: Path
    drafter: Path
    address: str

    def spec(self, out: Path, *, temperature: float, **changes: Any) -> JobSpec:
        """The baseline at a temperature, after changes."""
        how = BASELINE | changes
        prompts = self.repository / "examples" / "quickstart" / "prompts.jsonl"
        cluster = {name: how[name] for name in ("workers", "batch", "threads")}
        return JobSpec.model_validate(
            {
                "input": {"uri": str(prompts), "limit": NUM_ROWS, "columns": {"id": "id"}},
                "target": {"path": str(self.target)},
                "drafter": {"path": str(self.drafter)},
                "decode": {
                    "temperature": temperature,
                    "max_tokens": MAX_TOKENS,
                    "draft_budget": how["budget"],
                },
                "seed": {"value": 5},
                "output": {"uri": str(out / "job")},
                "shards": {"rows": SHARD_ROWS},
                "cluster": {"address": self.address, **cluster},
            }
        )


@pytest.fixture(scope="module")
def bench(repository: Path, tiny_target: Path, tiny_drafter: Path, cluster_address: str) -> Bench:
    """The bundled models on the shared cluster."""
    return Bench(
        repository=repository, target=tiny_target, drafter=tiny_drafter, address=cluster_address
    )


@pytest.fixture(scope="module")
def greedy_digest(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The baseline's digest."""
    return decode(bench.spec(tmp_path_factory.mktemp("greedy"), temperature=GREEDY))


@pytest.fixture(scope="module")
def sampled_digest(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest at temperature 1 without any draft."""
    return decode(bench.spec(tmp_path_factory.mktemp("sampled"), temperature=SAMPLED, budget=0))


def decode(spec: JobSpec) -> str:
    """Plan and run a job, or go on with it, to its seal; the digest of what is stored then."""
    planned = plan_job(spec)
    result = run_job(planned.store, planned.plan, spec, FakeSink())
    assert result.outcome == "sealed"
    return checked_digest(planned, budget=spec.decode.draft_budget)


def checked_digest(planned: PlannedJob, *, budget: int | str) -> str:
    """The digest of a job that is whole, sound, and drafted as much as it was told to."""
    stats = job_stats(OpenJob(store=planned.store, plan=planned.plan))
    assert (stats.complete, stats.ok) == (True, NUM_ROWS)
    assert verify_structure(planned.store) == []
    assert stats.drafted_per_sample is not None
    if budget != "auto":  # which may find that drafts do not pay here
        assert (stats.drafted_per_sample > 0) == (budget != 0)
    return stats.tokens_digest


def name_of(changes: dict[str, Any]) -> str:
    return "-".join(f"{name}={value}" for name, value in changes.items())


@pytest.mark.parametrize(
    "changes",
    [
        {"workers": 2},
        {"budget": 0},
        {"budget": "auto"},
        {"workers": 2, "batch": 8, "budget": 20},
        {"threads": 2, "batch": 1, "budget": "auto"},
    ],
    ids=name_of,
)
def test_the_greedy_digest_does_not_depend_on_how_it_is_decoded(
    bench: Bench, tmp_path: Path, greedy_digest: str, changes: dict[str, Any]
) -> None:
    assert decode(bench.spec(tmp_path, temperature=GREEDY, **changes)) == greedy_digest


@pytest.mark.parametrize(
    "changes",
    [{"workers": 2, "batch": 8, "budget": 20}, {"threads": 2, "budget": "auto"}],
    ids=name_of,
)
def test_the_sampled_digest_does_not_depend_on_how_it_is_decoded(
    bench: Bench, tmp_path: Path, sampled_digest: str, changes: dict[str, Any]
) -> None:
    assert decode(bench.spec(tmp_path, temperature=SAMPLED, **changes)) == sampled_digest


def test_the_hot_digest_differs_but_not_by_how_it_is_decoded(
    bench: Bench, tmp_path: Path, greedy_digest: str
) -> None:
    plain = decode(bench.spec(tmp_path / "plain", temperature=HOT, budget=0))
    drafted = decode(
        bench.spec(tmp_path / "drafted", temperature=HOT, workers=2, batch=8, budget=4)
    )
    assert plain == drafted != greedy_digest


def test_a_worker_killed_in_mid_shard_leaves_the_sampled_digest_alone(
    bench: Bench, tmp_path: Path, sampled_digest: str, gate: GateFolder
) -> None:
    spec = bench.spec(tmp_path, temperature=SAMPLED)
    gate.hold(1, 1)

    def kill() -> None:
        os.kill(gate.wait_until_reached(1, 1), signal.SIGKILL)
        gate.open(1, 1)

    with ThreadPoolExecutor(1) as background:
        killed = background.submit(kill)
        digest = decode(spec)
        killed.result()
    assert 1 in {failure.shard for failure in read_failures(plan_job(spec).store)}
    assert digest == sampled_digest


def test_a_killed_driver_is_resumed_and_finished_shards_are_not_decoded_again(
    bench: Bench, tmp_path: Path, greedy_digest: str, gate: GateFolder
) -> None:
    spec = bench.spec(tmp_path, temperature=GREEDY)
    planned = plan_job(spec)
    # A worker holds two shards, the dearest first, so it gets the fourth after two are committed.
    by_cost = sorted(planned.plan.shards, key=lambda shard: (-shard.expected_cost, shard.shard))
    held = by_cost[3].shard
    gate.hold(held, 1)
    with driver_process(spec, folder=tmp_path) as driver:
        worker = wait_until_held(driver, gate, shard=held, row=1)
    with suppress(psutil.NoSuchProcess):  # Ray ends the workers of a driver that is gone
        worker.kill()
        worker.wait(60)
    before = read_records(planned.store, planned.plan)
    assert len(before) >= 2
    assert held not in before

    gate.open(held, 1)
    assert decode(spec) == greedy_digest
    after = read_records(planned.store, planned.plan)
    assert {shard: after[shard] for shard in before} == before


@contextmanager
def driver_process(spec: JobSpec, *, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """`spotbatch run` as a process, killed at the end of the block."""
    job_file = folder / "job.yaml"
    job_file.write_text(spec.model_dump_json(exclude_unset=True))  # JSON is YAML
    driver = subprocess.Popen(
        [COMMAND, "run", job_file],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield driver
    finally:
        driver.kill()
        driver.communicate()


def wait_until_held(
    driver: subprocess.Popen[str], gate: GateFolder, *, shard: int, row: int
) -> psutil.Process:
    """The worker that is held there; a driver that ends before says why."""
    wait_for(
        lambda: gate.is_reached(shard, row) or driver.poll() is not None,
        what=f"a worker at row {row} of shard {shard}",
    )
    assert driver.poll() is None, driver.communicate()
    return psutil.Process(gate.wait_until_reached(shard, row))
