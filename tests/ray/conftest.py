"""A planned job of six shards without a model, and its runs on the shared cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.driver import RunResult, run_job
from manifests.job_running import Cluster, Retry
from tests.jobs.driver.fakes import FakeSink
from tests.manifests.builders import StoredJob, make_job
from tests.ray.gates import GateFolder
from workers.gate import VARIABLE

Run = Callable[..., RunResult]


@pytest.fixture
def job(tmp_path: Path) -> StoredJob:
    """The job: six shards of three rows, two samples each; the last row is an error."""
    return make_job(tmp_path, counts=(3,) * 6, work="null")


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GateFolder:
    """Holds workers of drivers that are started after it, here or as processes."""
    folder = tmp_path / "gate"
    folder.mkdir()
    monkeypatch.setenv(VARIABLE, str(folder))
    return GateFolder(folder)


@pytest.fixture
def sink() -> FakeSink:
    """What the driver said."""
    return FakeSink()


@pytest.fixture
def run(job: StoredJob, cluster_address: str, sink: FakeSink) -> Run:
    """A run on the shared cluster."""

    def run(*, workers: int = 1, retry: Retry | None = None, **cluster: Any) -> RunResult:
        where = Cluster(address=cluster_address, workers=workers, **cluster)
        update = {"cluster": where, "retry": retry or Retry()}
        return run_job(job.store, job.plan, job.plan.job.model_copy(update=update), sink)

    return run
