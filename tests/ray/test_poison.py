"""Rows that raise, exit, hang or use up memory: one error row each, and every other row is good."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from manifests.job_running import Retry
from manifests.journal import read_failures
from manifests.protocol import read_seal
from manifests.verification import verify_structure
from tests.jobs.driver.fakes import FakeSink
from tests.manifests.builders import StoredJob
from tests.ray.conftest import Run
from tests.ray.hooking import Hooks

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]
POISON = {"id-1": "raise", "id-4": "exit", "id-9": "hang", "id-13": "memory"}
# decoding_s is what a hang takes to be found out; the rest is generous, for slow machines.
RETRY = Retry(decoding_s=4.0, lease_s=60.0, attempts=3)


@pytest.fixture
def hooks(tmp_path: Path) -> Hooks:
    """Poison in four of the six shards."""
    folder = tmp_path / "hooks"
    folder.mkdir()
    hooks = Hooks(folder)
    for row_id, kind in POISON.items():
        hooks.poison(row_id, kind)
    return hooks


def error_classes(job: StoredJob) -> dict[str, set[str | None]]:
    """By row id, over the row's samples."""
    seal = read_seal(job.store)
    assert seal is not None
    found: dict[str, set[str | None]] = {}
    for shard in seal.shards:
        table = pq.read_table(job.path(shard.data_key), columns=["id", "error_class"])
        for row in table.to_pylist():
            found.setdefault(row["id"], set()).add(row["error_class"])
    return found


def test_every_poison_row_becomes_one_error_row_and_nothing_else_does(
    run: Run, job: StoredJob, hooks: Hooks, sink: FakeSink
) -> None:
    result = run(workers=2, retry=RETRY, env=hooks.env)
    assert (result.outcome, result.exit_code) == ("sealed", 0)
    assert verify_structure(job.store) == []
    classes = error_classes(job)
    assert len(classes) == job.plan.rows
    expected = {"id-1": {"ValueError"}, "id-4": {"PoisonRow"}, "id-9": {"PoisonRow"}}
    expected |= {"id-13": {"MemoryError"}, "id-17": {"EmptyPrompt"}}
    assert {row: found for row, found in classes.items() if found != {None}} == expected
    rows = {failure.row for failure in read_failures(job.store) if failure.row is not None}
    assert rows == {1, 0}  # of id-4 and id-9 in their shards
    assert "becomes an error row" in "\n".join(sink.messages)
