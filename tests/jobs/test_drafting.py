"""Making a drafter for a random target: collecting, resuming, training, measuring."""

import json
import shutil
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import jobs.driver.run
import workers.runtime
from jobs.drafting import Collection, collection
from jobs.driver.notices import Notice, Reported
from jobs.errors import JobError
from jobs.job_file import load_job
from jobs.planning import PlannedJob, plan_job
from jobs.reading import open_job
from manifests.columns import TRAJECTORY_COLUMNS
from manifests.errors import DamagedError
from manifests.protocol import read_seal, seal_job
from manifests.verification import verify_structure
from spot.drafters.checkpoint import check_drafter
from tests.cli.support import complaint, spotbatch
from tests.jobs.driver.fakes import FakeNodes, FakePool, join
from tests.jobs.support import write_rows
from tests.twins import BLOCK_LENGTH, write_sdar_twin
from workers.attempt import AttemptRunner, ShardOrder, ShardOutcome
from workers.gate import Gate
from workers.stream import SampleStream
from workers.work import open_work

TOO_LONG = 3  # the row whose prompt the target cannot take
SMALL = (
    *("--steps", "4", "--batch", "8", "--width", "16", "--layers", "1", "--heads", "2"),
    *("--feedforward", "16", "--threads", "1"),
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    _shrink(monkeypatch)


def _shrink(patch: pytest.MonkeyPatch) -> None:
    """No prefix pages beyond what the batch needs, and no probe before every little job."""
    patch.setattr(workers.runtime, "CACHE_BYTES", 0)
    patch.setattr(workers.runtime, "probe_invariance", lambda target: None)


@pytest.fixture(scope="module")
def job_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of five rows in three shards."""
    torch.set_num_threads(1)
    folder = Path(tmp_path_factory.mktemp("job"))
    write_sdar_twin(folder / "twin")
    rows = [{"prompt": "x" * 300 if i == TOO_LONG else f"say {i}"} for i in range(5)]
    write_rows(folder / "prompts.jsonl", rows)
    lines = [
        f"input: {{uri: {folder / 'prompts.jsonl'}}}",
        f"target: {{path: {folder / 'twin'}}}",
        f"output: {{uri: {folder / 'out'}}}",
        "decode: {max_tokens: 12, ignore_eos: true}",
        "shards: {rows: 2}",
    ]
    path = folder / "job.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def _planned(job_file: Path, out: Path, *settings: str) -> PlannedJob:
    """A collect job that is planned, and nothing more."""
    return plan_job(load_job(job_file, (*settings, "work=collect", f"output.uri={out}")))


def _commit(planned: PlannedJob, shards: Sequence[int]) -> list[ShardOutcome]:
    """Decode and commit some shards, as a worker does."""
    plan = planned.plan
    work = open_work(plan, job=plan.job)
    stream = SampleStream(work, gate=Gate(None), clock=lambda: 0.0)
    runner = AttemptRunner(
        planned.store, plan=plan, job=plan.job, stream=stream, worker="w", versions={"v": "1"}
    )
    thread = threading.Thread(target=stream.run)
    thread.start()
    try:
        return [runner.run(ShardOrder(shard=shard)) for shard in shards]
    finally:
        stream.stop()
        thread.join()


@pytest.fixture(scope="module")
def collected(job_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole collection; not to be changed."""
    out = Path(tmp_path_factory.mktemp("collected")) / "data"
    planned = _planned(job_file, out)
    with pytest.MonkeyPatch.context() as patch:
        _shrink(patch)
        assert {o.status for o in _commit(planned, [0, 1, 2])} == {"committed"}
    seal_job(planned.store, planned.plan)
    return out


@pytest.fixture
def copied(collected: Path, tmp_path: Path) -> Path:
    """A whole collection to be changed."""
    shutil.copytree(collected, tmp_path / "data")
    return tmp_path / "data"


def _assert_equal(one: Collection, two: Collection) -> None:
    for name in type(one.trajectories).__slots__:
        arrays = (getattr(c.trajectories, name) for c in (one, two))
        assert np.array_equal(*arrays), name


def test_a_collection_says_what_it_is_about(collected: Path) -> None:
    found = collection(collected)
    assert (found.target, found.data, found.rule) == ("twin", "prompts.jsonl", "strict")
    assert found.block_length == BLOCK_LENGTH


def test_samples_carry_their_row_and_rows_that_cannot_be_decoded_are_left_out(
    collected: Path,
) -> None:
    found = collection(collected).trajectories
    assert set(found.sample.tolist()) == set(range(5)) - {TOO_LONG}
    assert len(found.step) == sum(sum(_rows(collected, i)["transitions"]) for i in range(3))


def _data_file(data: Path, shard: int) -> Path:
    """A shard's data file, as the seal names it."""
    seal = read_seal(open_job(str(data)).store)
    assert seal is not None
    return data / seal.shards[shard].data_key


def _rows(data: Path, shard: int) -> dict[str, list[Any]]:
    """A shard's output by column."""
    columns: dict[str, list[Any]] = pq.read_table(_data_file(data, shard)).to_pydict()
    return columns


def test_samples_of_one_row_share_its_number(job_file: Path, tmp_path: Path) -> None:
    planned = _planned(job_file, tmp_path, "sampling.n=2", "input.limit=2")
    _commit(planned, [0])
    found = collection(tmp_path).trajectories
    assert [found.sample[found.block[found.step == 0]].tolist().count(i) for i in range(2)] == [
        4,
        4,
    ]


def test_shards_committed_in_any_order_give_the_same_trajectories(
    job_file: Path, collected: Path, tmp_path: Path
) -> None:
    planned = _planned(job_file, tmp_path / "data")
    _commit(planned, [2])
    _commit(planned, [1, 0])
    _assert_equal(collection(tmp_path / "data"), collection(collected))


def test_of_an_unfinished_collection_what_is_committed_counts(
    job_file: Path, tmp_path: Path
) -> None:
    _commit(_planned(job_file, tmp_path), [1])
    assert np.unique(collection(tmp_path).trajectories.sample).tolist() == [2]


def test_a_file_that_no_record_names_is_not_read(copied: Path, collected: Path) -> None:
    file = _data_file(copied, 0)
    shutil.copy(file, file.with_name(f"0-{file.name}"))
    _assert_equal(collection(copied), collection(collected))


def test_an_error_row_has_no_trajectory_and_the_files_are_sound(collected: Path) -> None:
    assert verify_structure(open_job(str(collected)).store) == []
    columns = _rows(collected, 1)
    assert columns["error_class"] == [None, "PromptTooLong"]
    assert [columns[name][1] for name in TRAJECTORY_COLUMNS] == [None] * len(TRAJECTORY_COLUMNS)
    assert columns["trajectory_states"][0] == columns["transitions"][0]


def test_a_changed_file_is_refused_by_name(copied: Path) -> None:
    file = _data_file(copied, 0)
    file.write_bytes(b"else")
    with pytest.raises(DamagedError, match=file.name):
        collection(copied)


@pytest.mark.parametrize("command", ["train", "eval"])
def test_training_on_nothing_is_one_sentence(tmp_path: Path, command: str) -> None:
    other = {"train": "--out", "eval": "--drafter"}[command]
    result = spotbatch("drafter", command, "--data", tmp_path, other, tmp_path / "drafter")
    assert "holds no trajectories: make them with `spotbatch drafter collect`" in complaint(result)


def test_a_job_that_generates_holds_no_trajectories(job_file: Path, tmp_path: Path) -> None:
    planned = plan_job(load_job(job_file, (f"output.uri={tmp_path}",)))
    assert [outcome.status for outcome in _commit(planned, [0])] == ["committed"]
    with pytest.raises(JobError, match="holds no trajectories"):
        collection(tmp_path)


def test_a_collection_without_a_decoded_row_holds_no_trajectories(
    job_file: Path, tmp_path: Path
) -> None:
    rows = write_rows(tmp_path / "prompts.jsonl", [{"prompt": "x" * 300}])
    _commit(_planned(job_file, tmp_path / "data", f"input.uri={rows}"), [0])
    with pytest.raises(JobError, match="holds no trajectories"):
        collection(tmp_path / "data")


@pytest.fixture
def pool(job_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePool:
    """A pool whose workers collect into `data`; it takes the place of Ray."""

    def react(worker: str, shard: int) -> list[Notice]:
        (outcome,) = _commit(_planned(job_file, tmp_path / "data"), [shard])
        return [Reported(worker=worker, outcome=outcome)]

    pool = FakePool(on_start=join, on_assign=react)
    monkeypatch.setattr(jobs.driver.run, "ray_cluster", lambda cluster: nullcontext())
    monkeypatch.setattr(jobs.driver.run, "RayPool", lambda settings: pool)
    monkeypatch.setattr(jobs.driver.run, "RayNodes", FakeNodes)
    return pool


def test_the_command_runs_the_job_as_a_collection(
    job_file: Path, collected: Path, tmp_path: Path, pool: FakePool
) -> None:
    result = spotbatch("drafter", "collect", job_file, "--out", tmp_path / "data")
    assert result.exit_code == 0, result.output
    assert "5, 4 ok" in result.stdout
    _assert_equal(collection(tmp_path / "data"), collection(collected))


def test_shards_that_are_committed_are_not_collected_again(
    job_file: Path, collected: Path, tmp_path: Path, pool: FakePool
) -> None:
    _commit(_planned(job_file, tmp_path / "data"), [1])
    result = spotbatch("drafter", "collect", job_file, "--out", tmp_path / "data")
    assert result.exit_code == 0, result.output
    assert sorted(shard for _, shard in pool.assigned) == [0, 2]
    _assert_equal(collection(tmp_path / "data"), collection(collected))


def test_a_complete_collection_is_only_reported(
    job_file: Path, copied: Path, pool: FakePool
) -> None:
    command = ("drafter", "collect", job_file, "--out", copied, "--set", "cluster.batch=3")
    result = spotbatch(*command)
    assert result.exit_code == 0, result.output
    assert "is complete already; nothing was decoded" in result.stdout
    assert pool.started == []


def test_another_collections_directory_is_refused(job_file: Path, copied: Path) -> None:
    command = ("drafter", "collect", job_file, "--out", copied)
    result = spotbatch(*command, "--set", "decode.max_tokens=8")
    assert "decode.max_tokens was 12, is 8" in complaint(result)


def test_the_directory_of_a_job_that_generates_is_refused(job_file: Path, tmp_path: Path) -> None:
    plan_job(load_job(job_file, (f"output.uri={tmp_path}",)))
    result = spotbatch("drafter", "collect", job_file, "--out", tmp_path)
    assert "work was 'generate', is 'collect'" in complaint(result)


def test_a_directory_with_a_hash_in_its_name_is_taken_as_it_stands(
    job_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "a #b: c"
    plan_job(load_job(job_file, ("work=collect", f"output.uri={json.dumps(str(out))}")))
    result = spotbatch("drafter", "collect", job_file, "--out", out, "--set", "decode.max_tokens=8")
    assert "decode.max_tokens was 12, is 8" in complaint(result)


def test_training_needs_rows_to_learn_from_beside_those_held_out(
    job_file: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    _commit(_planned(job_file, data, "input.limit=1"), [0])
    result = spotbatch("drafter", "train", "--data", data, "--out", tmp_path / "drafter", *SMALL)
    assert "prompts.jsonl gave trajectories of 1 rows, too few to train on" in complaint(result)


def test_a_trained_drafter_is_accepted_for_the_target(collected: Path, tmp_path: Path) -> None:
    drafter = tmp_path / "drafter"
    result = spotbatch("drafter", "train", "--data", collected, "--out", drafter, *SMALL)
    assert result.exit_code == 0, result.output
    assert check_drafter(drafter, BLOCK_LENGTH) == []
    said = json.loads((drafter / "drafter.json").read_text())
    assert (said["target"], said["data"]) == ("twin", "prompts.jsonl")


def test_evaluation_measures_the_held_out_samples_that_training_measured(
    collected: Path, tmp_path: Path
) -> None:
    drafter = tmp_path / "drafter"
    trained = spotbatch("drafter", "train", "--data", collected, "--out", drafter, *SMALL)
    held_out = spotbatch("drafter", "eval", "--data", collected, "--drafter", drafter)
    assert held_out.stdout == trained.stdout
    assert held_out.stdout.splitlines()[0].split() == [
        *("depth", "examples", "order", "model", "stale", "confidence")
    ]


def test_evaluation_of_all_samples_covers_every_root(collected: Path, tmp_path: Path) -> None:
    drafter = tmp_path / "drafter"
    spotbatch("drafter", "train", "--data", collected, "--out", drafter, *SMALL)
    result = spotbatch(
        *("drafter", "eval", "--data", collected, "--drafter", drafter, "--all-samples", "--json")
    )
    rows = json.loads(result.stdout)
    assert rows[0]["examples"] == len(collection(collected).trajectories.roots())
