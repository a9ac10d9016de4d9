"""One digest for any workers, batch, threads, budget and crashes: the bundled target on Ray."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.driver import run_job
from jobs.planning import plan_job
from jobs.reading import OpenJob
from jobs.stats import job_stats
from manifests.job import JobSpec
from manifests.plan import read_plan
from manifests.protocol import read_records
from manifests.store import open_store
from manifests.verification import verify_structure
from tests.jobs.driver.fakes import FakeSink
from tests.ray.gates import GateFolder
from tests.workers.conditions import wait_for

pytestmark = [pytest.mark.ray, pytest.mark.models]
NUM_ROWS, SHARD_ROWS = 24, 6
BASELINE: dict[str, Any] = {"workers": 1, "batch": 3, "threads": 1, "budget": 8}
Decode = Callable[..., str]


@pytest.fixture(scope="module")
def baseline(
    tmp_path_factory: pytest.TempPathFactory, cluster_address: str, repository: Path
) -> Callable[[float], str]:
    """The digest of the baseline at a temperature; decoded once."""
    known: dict[float, str] = {}

    def digest(temperature: float) -> str:
        if temperature not in known:
            spec = _spec(
                tmp_path_factory.mktemp("baseline"),
                repository=repository,
                address=cluster_address,
                temperature=temperature,
            )
            known[temperature] = _run(spec)
        return known[temperature]

    return digest


def _spec(
    out: Path, *, repository: Path, address: str, temperature: float = 0.0, **changes: Any
) -> JobSpec:
    how = BASELINE | changes
    tiny = repository / "examples" / "tiny"
    return JobSpec.model_validate(
        {
            "input": {
                "uri": str(repository / "examples" / "quickstart" / "prompts.jsonl"),
                "limit": NUM_ROWS,
                "columns": {"id": "id"},
            },
            "target": {"path": str(tiny / "target")},
            "drafter": {"path": str(tiny / "drafter")},
            "decode": {
                "temperature": temperature,
                "max_tokens": 64,
                "draft_budget": how["budget"],
            },
            "seed": {"value": 5},
            "output": {"uri": str(out / "job")},
            "shards": {"rows": SHARD_ROWS},
            "cluster": {
                "address": address,
                "workers": how["workers"],
                "batch": how["batch"],
                "threads": how["threads"],
            },
        }
    )


def _run(spec: JobSpec) -> str:
    planned = plan_job(spec)
    result = run_job(planned.store, planned.plan, spec, FakeSink())
    assert result.outcome == "sealed"
    return _digest(spec)


def _digest(spec: JobSpec) -> str:
    store = open_store(spec.output.uri)
    stats = job_stats(OpenJob(store=store, plan=read_plan(store)), scorer=None)
    assert (stats.complete, stats.ok) == (True, NUM_ROWS)
    assert verify_structure(store) == []
    assert stats.tokens_digest is not None
    return stats.tokens_digest


def _drafted(spec: JobSpec) -> int:
    files = Path(spec.output.uri, "data").glob("*.parquet")
    return sum(sum(pq.read_table(f, columns=["drafted"])["drafted"].to_pylist()) for f in files)


@pytest.mark.parametrize(
    "changes",
    [
        {"workers": 2},
        {"batch": 1},
        {"batch": 8},
        {"threads": 2},
        {"budget": 0},
        {"budget": 20},
        {"budget": "auto"},
        {"workers": 2, "batch": 8, "budget": 20},
        {"threads": 2, "batch": 1, "budget": "auto"},
    ],
    ids=lambda changes: "-".join(f"{name}={value}" for name, value in changes.items()),
)
def test_one_factor_at_a_time_leaves_the_greedy_digest_alone(
    tmp_path: Path,
    cluster_address: str,
    repository: Path,
    baseline: Callable[[float], str],
    changes: dict[str, Any],
) -> None:
    spec = _spec(tmp_path, repository=repository, address=cluster_address, **changes)
    assert _run(spec) == baseline(0.0)
    if changes.get("budget", 8) in (8, 20):
        assert _drafted(spec) > 0


@pytest.mark.parametrize(
    "changes",
    [{"budget": 0}, {"workers": 2, "batch": 8, "budget": 20}, {"threads": 2, "budget": "auto"}],
    ids=lambda changes: "-".join(f"{name}={value}" for name, value in changes.items()),
)
def test_sampled_digests_are_equal_among_themselves(
    tmp_path: Path,
    cluster_address: str,
    repository: Path,
    baseline: Callable[[float], str],
    changes: dict[str, Any],
) -> None:
    spec = _spec(
        tmp_path, repository=repository, address=cluster_address, temperature=1.0, **changes
    )
    assert _run(spec) == baseline(1.0)
    assert baseline(1.0) != baseline(0.0)


def test_a_worker_killed_in_mid_shard_leaves_the_digest_alone(
    tmp_path: Path,
    cluster_address: str,
    repository: Path,
    baseline: Callable[[float], str],
    gate: GateFolder,
) -> None:
    gate.hold(1, 2)

    def kill() -> None:
        os.kill(gate.wait_until_reached(1, 2), signal.SIGKILL)
        gate.open(1, 2)

    spec = _spec(tmp_path, repository=repository, address=cluster_address)
    with ThreadPoolExecutor(1) as background:
        killed = background.submit(kill)
        digest = _run(spec)
        killed.result()
    assert digest == baseline(0.0)
    assert list(Path(spec.output.uri, "failures").iterdir())


DRIVER = """
import sys
from jobs.driver import run_job
from jobs.planning import plan_job
from jobs.progress import PlainProgress
from manifests.job import JobSpec

spec = JobSpec.model_validate_json(sys.argv[1])
planned = plan_job(spec)
run_job(planned.store, planned.plan, spec, PlainProgress(sys.stderr))
"""


def test_a_killed_driver_is_resumed_and_finished_shards_are_not_decoded_again(
    tmp_path: Path,
    cluster_address: str,
    repository: Path,
    baseline: Callable[[float], str],
    gate: GateFolder,
) -> None:
    spec = _spec(tmp_path, repository=repository, address=cluster_address)
    planned = plan_job(spec)
    store, plan = planned.store, planned.plan
    last = min(plan.shards, key=lambda s: (s.expected_cost, -s.shard)).shard  # dearest first
    gate.hold(last, 1)
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, spec.model_dump_json()])
    try:
        worker = gate.wait_until_reached(last, 1)
        wait_for(lambda: len(read_records(store, plan)) > 0, what="a committed shard")
    finally:
        driver.kill()
        driver.wait()
    os.kill(worker, signal.SIGKILL)
    before = read_records(store, plan)
    assert last not in before
    gate.open(last, 1)
    assert _run(spec) == baseline(0.0)
    after = read_records(store, plan)
    assert {shard: after[shard] for shard in before} == before
