"""Collecting on a real cluster gives what one engine gives by itself."""

from pathlib import Path

import numpy as np
import pytest

from jobs.drafting import collection
from jobs.reading import open_job
from manifests.staged import read_shard
from manifests.verification import verify_structure
from spot.training.trajectories import Trajectories
from tests.cli.support import spotbatch
from tests.jobs.support import write_rows
from tests.twins import write_sdar_twin
from workers.collection import from_columns
from workers.work import open_work

pytestmark = pytest.mark.ray
NUM_ROWS = 6


@pytest.fixture
def job_file(tmp_path: Path, cluster_address: str) -> Path:
    """Six short rows in three shards, for two workers on the shared cluster."""
    write_sdar_twin(tmp_path / "twin")
    write_rows(tmp_path / "prompts.jsonl", [{"prompt": f"say {i}"} for i in range(NUM_ROWS)])
    lines = [
        f"input: {{uri: {tmp_path / 'prompts.jsonl'}}}",
        f"target: {{path: {tmp_path / 'twin'}}}",
        "decode: {max_tokens: 12, ignore_eos: true, temperature: 1.0}",
        "shards: {rows: 2}",
        f"cluster: {{address: '{cluster_address}', workers: 2, batch: 3}}",
    ]
    path = tmp_path / "job.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def _collected_here(data: Path) -> Trajectories:
    """The trajectories of the planned job, decoded in this process."""
    job = open_job(str(data))
    work = open_work(job.plan, job=job.plan.job)
    samples = []
    for shard in job.plan.shards:
        work.admit(shard, read_shard(job.store, job.plan, shard.shard))
    while work.has_work():
        samples += work.step()
    samples.sort(key=lambda sample: (sample.shard, sample.row))
    return Trajectories.concatenate(
        [from_columns(s.trajectory or {}).numbered(i) for i, s in enumerate(samples)]
    )


def test_a_collection_from_a_cluster_is_that_of_one_engine(job_file: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    command = ("drafter", "collect", job_file, "--out", data)
    result = spotbatch(*command)
    assert result.exit_code == 0, result.output
    assert verify_structure(open_job(str(data)).store) == []
    found, expected = collection(data).trajectories, _collected_here(data)
    assert np.unique(found.sample).tolist() == list(range(NUM_ROWS))
    for name in Trajectories.__slots__:
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    again = spotbatch(*command)
    assert (again.exit_code, "is complete already" in again.stdout) == (0, True), again.output
