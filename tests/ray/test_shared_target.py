"""A worker whose target is shared by two processes, on a real cluster."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from jobs.driver import run_job
from jobs.planning import plan_job
from jobs.reading import OpenJob
from jobs.stats import job_stats
from manifests.job import JobSpec
from manifests.journal import read_failures
from manifests.verification import verify_structure
from tests.checkpoints import write_released
from tests.jobs.driver.fakes import FakeSink
from tests.jobs.support import write_rows
from tests.ray.gates import GateFolder

pytestmark = [pytest.mark.ray, pytest.mark.models]


def canvas_job(folder: Path, *, address: str, budget: int | str, processes: int) -> JobSpec:
    """Two shards on LLaDA's layout, whose target looks both ways."""
    cluster = {"address": address, "batch": 2, "tensor_parallel": processes}
    decode = {"max_tokens": 12, "cache_context": "prefix", "draft_budget": budget}
    return JobSpec.model_validate(
        {
            "input": {"uri": str(folder / "prompts.jsonl")},
            "target": {"path": str(folder / "target"), "block_length": 8, "dtype": "float64"},
            "drafter": {"method": "stale_rule"},
            "decode": decode,
            "output": {"uri": str(folder / f"out-{processes}")},
            "shards": {"rows": 3},
            "cluster": cluster,
        }
    )


def run_to_its_seal(spec: JobSpec) -> OpenJob:
    planned = plan_job(spec)
    sink = FakeSink()
    result = run_job(planned.store, planned.plan, spec, sink)
    assert result.outcome == "sealed", sink.messages
    assert verify_structure(planned.store) == []
    return OpenJob(store=planned.store, plan=planned.plan)


def test_a_rank_that_dies_ends_its_worker_and_another_finishes_the_same_outputs(
    tmp_path: Path, cluster_address: str, gate: GateFolder
) -> None:
    write_released("llada", tmp_path / "target")
    write_rows(tmp_path / "prompts.jsonl", [{"prompt": f"say {i}"} for i in range(6)])
    spec = canvas_job(tmp_path, address=cluster_address, budget="auto", processes=2)
    gate.hold(1, 0)

    def kill() -> None:
        (rank,) = psutil.Process(gate.wait_until_reached(1, 0)).children()
        rank.kill()
        gate.open(1, 0)

    with ThreadPoolExecutor(1) as background:
        killed = background.submit(kill)
        shared = run_to_its_seal(spec)
        killed.result()
    causes = {failure.message for failure in read_failures(shared.store)}
    assert any("rank 1 of the target ended by SIGKILL" in cause for cause in causes), causes
    alone = canvas_job(tmp_path, address=cluster_address, budget=0, processes=1)
    assert job_stats(shared).tokens_digest == job_stats(run_to_its_seal(alone)).tokens_digest
