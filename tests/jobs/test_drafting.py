"""Making a drafter for a random target: collecting, resuming, training, measuring."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import jobs.drafting
import workers.collection
import workers.runtime
from jobs.drafting import collect, collection
from jobs.errors import JobError
from jobs.job_file import load_job
from manifests.job import JobSpec
from manifests.staged import StagedRow
from spot.drafters.checkpoint import check_drafter
from spot.training.trajectories import Trajectories
from tests.cli.support import complaint, spotbatch
from tests.jobs.support import write_rows
from tests.twins import BLOCK_LENGTH, write_sdar_twin

TOO_LONG = 3  # the row whose prompt the target cannot take
SMALL = (
    *("--steps", "4", "--batch", "8", "--width", "16", "--layers", "1", "--heads", "2"),
    *("--feedforward", "16", "--threads", "1"),
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows a file, and no prefix pages beyond what the batch needs."""
    _shrink(monkeypatch)


def _shrink(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(jobs.drafting, "ROWS_PER_FILE", 2)
    patch.setattr(workers.runtime, "CACHE_BYTES", 0)


@pytest.fixture(scope="module")
def job_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of five rows."""
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
    ]
    path = folder / "job.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def job(job_file: Path) -> JobSpec:
    return load_job(job_file, ())


@pytest.fixture(scope="module")
def collected(job_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole collection; not to be changed."""
    out = Path(tmp_path_factory.mktemp("collected")) / "data"
    with pytest.MonkeyPatch.context() as patch:
        _shrink(patch)
        assert collect(load_job(job_file, ()), out, report=lambda rows, total: None) == 3
    return out


@pytest.fixture
def copied(collected: Path, tmp_path: Path) -> Path:
    """A whole collection to be changed."""
    shutil.copytree(collected, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files for which rows are decoded."""
    names: list[str] = []
    original = workers.collection.Collector.collect

    def spy(self: Any, rows: list[StagedRow], *, first: int, path: Path) -> int:
        names.append(path.name)
        return original(self, rows, first=first, path=path)

    monkeypatch.setattr(workers.collection.Collector, "collect", spy)
    return names


def _collect(job: JobSpec, out: Path) -> list[tuple[int, int]]:
    reports: list[tuple[int, int]] = []
    collect(job, out, report=lambda rows, total: reports.append((rows, total)))
    return reports


def test_each_group_of_rows_becomes_a_file(collected: Path) -> None:
    said, files = collection(collected)
    assert [file.name for file in files] == [f"trajectories-{i:05d}.safetensors" for i in range(3)]
    assert said["block_length"] == BLOCK_LENGTH


def test_trajectories_carry_their_row_and_rows_that_cannot_be_decoded_are_left_out(
    collected: Path,
) -> None:
    found = Trajectories.load(collection(collected)[1])
    assert set(found.sample) == set(range(5)) - {TOO_LONG}


def test_progress_counts_rows_and_new_trajectories(job: JobSpec, tmp_path: Path) -> None:
    assert _collect(job, tmp_path / "data") == [(2, 2), (4, 3), (5, 4)]


def test_files_that_are_there_are_not_decoded_again(
    job: JobSpec, copied: Path, decoded: list[str]
) -> None:
    missing = copied / "trajectories-00001.safetensors"
    before = missing.read_bytes()
    missing.unlink()
    assert _collect(job, copied) == [(2, 0), (4, 1), (5, 1)]
    assert decoded == [missing.name]
    assert missing.read_bytes() == before


def test_a_file_cut_off_in_the_middle_is_never_taken_for_a_whole_one(
    job: JobSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Trajectories, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(Trajectories, "save", broken)
    with pytest.raises(OSError, match="disk full"):
        _collect(job, tmp_path / "data")
    with pytest.raises(JobError, match="holds no trajectories"):
        collection(tmp_path / "data")


def test_samples_that_end_with_their_first_commit_leave_no_file(
    job_file: Path, tmp_path: Path
) -> None:
    # rendered, this prompt leaves one position of its block open
    rows = write_rows(tmp_path / "prompts.jsonl", [{"prompt": "four"}])
    job = load_job(job_file, ("decode.max_tokens=1", f"input.uri={rows}"))
    assert _collect(job, tmp_path / "data") == [(1, 1)]
    with pytest.raises(JobError, match="holds no trajectories"):
        collection(tmp_path / "data")


def test_another_collections_directory_is_refused(job_file: Path, copied: Path) -> None:
    other = load_job(job_file, ("decode.max_tokens=8",))
    with pytest.raises(JobError, match=r"collection\.json belongs to a collection with other"):
        _collect(other, copied)


def test_a_collection_may_go_on_with_another_draft_budget(
    job_file: Path, copied: Path, decoded: list[str]
) -> None:
    _collect(load_job(job_file, ("decode.draft_budget=3",)), copied)
    assert decoded == []


def test_training_on_nothing_is_one_sentence(tmp_path: Path) -> None:
    result = spotbatch("drafter", "train", "--data", tmp_path, "--out", tmp_path / "drafter")
    assert "holds no trajectories: make them with `spotbatch drafter collect`" in complaint(result)


def test_the_command_collects_like_the_function(
    job_file: Path, collected: Path, tmp_path: Path
) -> None:
    result = spotbatch("drafter", "collect", job_file, "--out", tmp_path / "data")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"3 files in {tmp_path / 'data'}\n"
    for file in collection(collected)[1]:
        assert (tmp_path / "data" / file.name).read_bytes() == file.read_bytes()


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
    assert rows[0]["examples"] == len(Trajectories.load(collection(collected)[1]).step)
