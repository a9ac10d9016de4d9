"""Target and drafter directories, looked at before anything is started."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.models import inspect_models
from manifests.errors import JobFileError
from manifests.hashing import sha256_hex
from manifests.job import JobSpec
from tests.jobs.support import BLOCK_LENGTH, write_drafter, write_target


def job(target: Path, drafter: Path | None = None, **more: Any) -> JobSpec:
    return JobSpec.model_validate(
        {
            "input": {"uri": "p.jsonl"},
            "target": {"path": str(target), **more},
            "drafter": {"path": drafter and str(drafter)},
            "output": {"uri": "o"},
        }
    )


def test_the_files_of_both_are_hashed(tmp_path: Path) -> None:
    files = inspect_models(job(write_target(tmp_path / "t"), write_drafter(tmp_path / "d")))
    by_name = {Path(file.path).name: file for file in (*files.target, *files.drafter)}
    assert {"config.json", "tokenizer.json", "model.safetensors"} <= by_name.keys()
    assert {"drafter.json", "drafter.safetensors"} <= by_name.keys()
    assert by_name["model.safetensors"].sha256 == sha256_hex(b"weights")
    assert files.warnings == ()


def test_without_a_drafter_there_are_no_files_of_one(tmp_path: Path) -> None:
    assert inspect_models(job(write_target(tmp_path / "t"))).drafter == ()


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_target_that_lacks_a_file_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    target = write_target(tmp_path / "t")
    (target / name).unlink()
    with pytest.raises(JobFileError, match=f"{target / name} is missing"):
        inspect_models(job(target))


def test_a_target_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match=str(tmp_path / "nothing")):
        inspect_models(job(tmp_path / "nothing"))


def test_a_drafter_for_another_block_length_is_a_warning(tmp_path: Path) -> None:
    drafter = write_drafter(tmp_path / "d", block_length=16)
    (warning,) = inspect_models(job(write_target(tmp_path / "t"), drafter)).warnings
    assert "was trained at block length 16" in warning


def test_a_drafter_of_another_format_is_refused(tmp_path: Path) -> None:
    drafter = write_drafter(tmp_path / "d", format="something")
    with pytest.raises(JobFileError, match="not a drafter of this format"):
        inspect_models(job(write_target(tmp_path / "t"), drafter))


def with_drafter(folder: Path, kind: str, *, method: str | None = None, **decode: Any) -> JobSpec:
    """A job with a drafter of some kind."""
    plain = job(write_target(folder / "t"), write_drafter(folder / "d", kind=kind))
    drafter = plain.drafter.model_dump() | {"method": method}
    return JobSpec.model_validate(plain.model_dump() | {"drafter": drafter, "decode": decode})


def test_an_order_drafter_is_refused_under_the_threshold_rule(tmp_path: Path) -> None:
    threshold = with_drafter(tmp_path, "order", rule="threshold", tau=0.9)
    with pytest.raises(JobFileError, match=r"use drafter\.method: spot_sets or sets_stale"):
        inspect_models(threshold)


def test_a_set_drafter_is_refused_under_the_strict_rule(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match=r"spot_sets proposes sets of commits"):
        inspect_models(with_drafter(tmp_path, "sets"))


def test_a_set_drafter_is_taken_under_the_threshold_rule(tmp_path: Path) -> None:
    threshold = with_drafter(tmp_path, "sets", rule="threshold", tau=0.9)
    assert len(inspect_models(threshold).drafter) == 2


def test_a_directory_of_another_method_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match=r"kind 'sets', not 'order'"):
        inspect_models(with_drafter(tmp_path, "sets", method="spot_chain"))


def test_the_graph_of_a_spiffy_drafter_is_hashed(tmp_path: Path) -> None:
    node = {"pairs": [[0, 0]], "parents": [-1], "count": 1}
    graph = {"lookahead": 1, "size": 1, "block_length": BLOCK_LENGTH, "num_roots": 1}
    names = {"target": "t", "data": "d", "nodes": [node]}
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "spiffy.json").write_text(json.dumps(graph | names))
    plain = job(write_target(tmp_path / "t"), tmp_path / "d")
    drafter = plain.drafter.model_copy(update={"method": "spiffy"})
    files = inspect_models(plain.model_copy(update={"drafter": drafter}))
    assert [Path(file.path).name for file in files.drafter] == ["spiffy.json"]
    assert files.warnings == ()


def test_a_block_length_that_contradicts_the_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match=r"target\.block_length is 8"):
        inspect_models(job(write_target(tmp_path / "t"), block_length=8))


def test_the_revision_of_a_target_is_the_directorys_or_the_jobs(tmp_path: Path) -> None:
    plain = write_target(tmp_path / "t")
    assert inspect_models(job(plain)).target_revision is None
    assert inspect_models(job(plain, revision="v1")).target_revision == "v1"
    snapshot = write_target(tmp_path / "snapshots" / ("ab" * 20))
    assert inspect_models(job(snapshot)).target_revision == "ab" * 20
    with pytest.raises(JobFileError, match=r"target\.revision is v1 but .* holds revision abab"):
        inspect_models(job(snapshot, revision="v1"))
