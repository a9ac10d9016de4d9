"""Planning: what is written down once, and what a second planner finds."""

import shutil
from pathlib import Path

import pytest

from jobs.job_file import load_job
from jobs.planning import plan_job, preview_job
from manifests.errors import (
    DamagedError,
    FingerprintError,
    InputError,
    JobFileError,
    ManifestError,
)
from manifests.hashing import sha256_file, sha256_hex
from manifests.plan import read_plan
from manifests.staged import read_shard
from tests.jobs.support import (
    job_of,
    planned_job,
    prompts,
    write_drafter,
    write_job,
    write_rows,
)


def test_a_plan_names_everything_that_decides_the_output(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    plan = planned.plan
    assert planned.created
    assert read_plan(planned.store) == plan
    assert (plan.rows, len(plan.shards)) == (3, 2)
    assert plan.input[0].sha256 == sha256_hex((tmp_path / "prompts.jsonl").read_bytes())
    assert {Path(file.path).name for file in plan.target_files} >= {"model.safetensors"}
    assert plan.versions.keys() >= {"spotbatch", "python", "torch", "ray", "pyarrow"}
    assert plan.job.output.uri == str(tmp_path / "out")


def test_the_staged_rows_can_be_read_by_shard(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    rows = [row for shard in (0, 1) for row in read_shard(planned.store, planned.plan, shard)]
    assert [(row.id, row.prompt) for row in rows] == [(f"r{i}", f"say {i}") for i in range(3)]


def test_planning_again_finds_the_plan(tmp_path: Path) -> None:
    job = job_of(tmp_path, rows=prompts(3))
    first, second = plan_job(job), plan_job(job)
    assert (first.created, second.created) == (True, False)
    assert second.plan == first.plan


def test_operational_settings_may_differ_from_the_plan(tmp_path: Path) -> None:
    path = write_job(tmp_path, rows=prompts(3))
    plan_job(load_job(path))
    assert not plan_job(load_job(path, ["cluster.workers=3", "decode.draft_budget=0"])).created


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("decode.max_tokens=7", "decode.max_tokens was 256, is 7"),
        ("shards.rows=1", "shards.rows was 2, is 1"),
        ("seed.value=9", "seed.value was 0, is 9"),
    ],
)
def test_another_semantic_setting_is_refused_by_name(
    tmp_path: Path, override: str, words: str
) -> None:
    path = write_job(tmp_path, rows=prompts(3))
    plan_job(load_job(path))
    with pytest.raises(FingerprintError, match=words):
        plan_job(load_job(path, [override]))


def test_other_input_contents_are_refused(tmp_path: Path) -> None:
    job = job_of(tmp_path, rows=prompts(3))
    plan_job(job)
    write_rows(tmp_path / "prompts.jsonl", prompts(4))
    with pytest.raises(FingerprintError, match=r"input \(contents\)"):
        plan_job(job)


def test_other_target_contents_are_refused(tmp_path: Path) -> None:
    job = job_of(tmp_path, rows=prompts(3))
    plan_job(job)
    (tmp_path / "target" / "model.safetensors").write_bytes(b"others")
    with pytest.raises(FingerprintError, match=r"target \(contents\)"):
        plan_job(job)


@pytest.mark.parametrize("verifier", ["greedy", "coupled"])
def test_other_drafter_contents_are_refused_where_drafts_can_change_outputs(
    tmp_path: Path, verifier: str
) -> None:
    drafter = write_drafter(tmp_path / "drafter")
    settings = [f"drafter.path={drafter}", f"decode.verifier={verifier}", "decode.draft_budget=4"]
    job = job_of(tmp_path, rows=prompts(3), set_=settings)
    plan_job(job)
    assert not plan_job(job).created
    (drafter / "drafter.safetensors").write_bytes(b"others")
    if verifier == "coupled":
        assert not plan_job(job).created
        return
    with pytest.raises(FingerprintError, match=r"drafter \(contents\)"):
        plan_job(job)


def test_planners_of_different_inputs_leave_each_others_staged_files_alone(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first = planned_job(tmp_path / "first", rows=prompts(3))
    (of_another,) = (tmp_path / "first" / "out" / "input").iterdir()
    folder = tmp_path / "second" / "out" / "input"
    folder.mkdir(parents=True)
    shutil.copy(of_another, folder)
    second = planned_job(tmp_path / "second", rows=prompts(4))
    for plan in (first.plan, second.plan):
        (staged,) = plan.staged
        assert sha256_file(tmp_path / "second" / "out" / staged.path) == staged.sha256


def test_a_staged_file_that_was_changed_since_is_refused(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    out = tmp_path / "out"
    (out / "plan.json").unlink()
    (out / planned.plan.staged[0].path).write_bytes(b"changed")
    with pytest.raises(DamagedError, match="it is there with other bytes; delete it, and try"):
        planned_job(tmp_path, rows=prompts(3))


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ("input.uri=absent.jsonl", InputError),
        ("input.columns.prompt=absent", InputError),
        ("target.path=absent", JobFileError),
        ("drafter.path=absent", JobFileError),
        ("stats.scorer=absent:score", ValueError),
        ("output.uri=s3://bucket/o", ManifestError),
    ],
)
def test_nothing_is_written_when_something_is_wrong(
    tmp_path: Path, setting: str, error: type[Exception]
) -> None:
    job = job_of(tmp_path, rows=prompts(3), set_=[setting])
    with pytest.raises(error):
        plan_job(job)
    assert not (tmp_path / "out").exists()


def test_a_preview_writes_nothing(tmp_path: Path) -> None:
    preview = preview_job(job_of(tmp_path, rows=prompts(3)))
    assert (preview.staged.rows, len(preview.staged.shards)) == (3, 2)
    assert not (tmp_path / "out").exists()


def test_a_preview_refuses_what_planning_would_refuse(tmp_path: Path) -> None:
    path = write_job(tmp_path, rows=prompts(3))
    plan_job(load_job(path))
    with pytest.raises(FingerprintError, match=r"seed\.value"):
        preview_job(load_job(path, ["seed.value=9"]))


def test_an_output_that_cannot_be_a_directory_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ManifestError, match=r"cannot hold a job"):
        planned_job(tmp_path, rows=prompts(1), set_=[f"output.uri={tmp_path / 'file'}"])
