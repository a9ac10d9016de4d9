"""Models on a node compared with the plan, from its disk or from S3."""

from pathlib import Path

import pytest

from jobs.models import inspect_models
from manifests.job import JobSpec
from manifests.store import open_store
from tests.jobs.support import job_of, prompts, write_drafter
from workers.errors import ModelFilesError
from workers.model_files import checked_models, fetched_models


@pytest.fixture
def job(tmp_path: Path) -> JobSpec:
    """A job with target and drafter on this disk."""
    drafter = write_drafter(tmp_path / "drafter")
    return job_of(
        tmp_path,
        rows=prompts(1),
        set_=[f"drafter.path={drafter}", f"storage.cache_path={tmp_path / 'cache'}"],
    )


def check(job: JobSpec, planned: JobSpec) -> JobSpec:
    """What a worker does with a run's job, as it was planned."""
    files = inspect_models(planned)
    return checked_models(job, target=files.target, drafter=files.drafter)


def test_unchanged_local_models_are_used_where_they_are(job: JobSpec) -> None:
    assert check(job, job) == job


@pytest.mark.parametrize(
    ("name", "field"),
    [("target/model.safetensors", "target.path"), ("drafter/drafter.safetensors", "drafter.path")],
)
def test_changed_local_weights_are_refused_by_name(
    job: JobSpec, tmp_path: Path, name: str, field: str
) -> None:
    files = inspect_models(job)
    checked_models(job, target=files.target, drafter=files.drafter)  # now the hashes are known
    (tmp_path / name).write_bytes(b"other weights")
    with pytest.raises(ModelFilesError, match=f"^{field}: .*{name} is not the file") as caught:
        checked_models(job, target=files.target, drafter=files.drafter)
    assert "plan a new job" in str(caught.value)


def test_a_model_that_this_node_has_not_got_is_told_with_the_remedy(
    job: JobSpec, tmp_path: Path
) -> None:
    files = inspect_models(job)
    (tmp_path / "target" / "model.safetensors").unlink()
    with pytest.raises(ModelFilesError, match="is not on this node; put models where every node"):
        checked_models(job, target=files.target, drafter=files.drafter)


def test_a_file_is_hashed_once_until_it_changes(
    job: JobSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    import workers.model_files

    files = inspect_models(job)
    checked_models(job, target=files.target, drafter=files.drafter)
    monkeypatch.setattr(workers.model_files, "sha256_file", lambda path: "not needed")
    assert checked_models(job, target=files.target, drafter=files.drafter) == job


def put_models(job: JobSpec, bucket: str) -> JobSpec:
    """The job with its models in S3, beside files that nobody may read."""
    paths = {"target": job.target.path, "drafter": job.drafter.path}
    for name, path in paths.items():
        assert path is not None
        (Path(path) / "pytorch_model.bin").write_bytes(b"a pickle")
        for file in Path(path).iterdir():
            open_store(f"s3://{bucket}/models/{name}").put_file_if_absent(file.name, file)
    uri = f"s3://{bucket}/models"
    return job.model_copy(
        update={
            "target": job.target.model_copy(update={"path": f"{uri}/target"}),
            "drafter": job.drafter.model_copy(update={"path": f"{uri}/drafter/"}),
        }
    )


@pytest.mark.s3
def test_models_come_from_s3_into_the_cache_without_pickles(
    job: JobSpec, s3_bucket: str, tmp_path: Path
) -> None:
    remote = put_models(job, s3_bucket)
    files = inspect_models(remote)
    assert {file.path for file in files.target} == {
        f"{remote.target.path}/{name}"
        for name in (
            "config.json",
            "tokenizer.json",
            "chat_template.jinja",
            "model.safetensors",
        )
    }
    local = checked_models(remote, target=files.target, drafter=files.drafter)
    weights = Path(local.target.path) / "model.safetensors"
    assert weights.read_bytes() == b"weights"
    assert weights.is_relative_to(tmp_path / "cache")
    assert local.drafter.path is not None
    assert sorted(path.name for path in Path(local.drafter.path).iterdir()) == [
        "drafter.json",
        "drafter.safetensors",
    ]
    assert not list((tmp_path / "cache").rglob("*.bin"))


@pytest.mark.s3
def test_a_model_that_changed_in_s3_since_the_plan_is_refused(
    job: JobSpec, s3_bucket: str, tmp_path: Path
) -> None:
    remote = put_models(job, s3_bucket)
    files = inspect_models(remote)
    folder = open_store(f"s3://{s3_bucket}/models/target")
    folder.delete("model.safetensors")
    folder.put_if_absent("model.safetensors", b"other weights")
    elsewhere = remote.model_copy(
        update={"storage": remote.storage.model_copy(update={"cache_path": str(tmp_path / "n2")})}
    )
    with pytest.raises(ModelFilesError, match=r"model\.safetensors is not the file"):
        checked_models(elsewhere, target=files.target, drafter=files.drafter)
    # Planning looks again, since the listing has changed.
    assert inspect_models(remote).target != files.target


@pytest.mark.s3
def test_an_empty_folder_in_s3_is_no_model(job: JobSpec, s3_bucket: str) -> None:
    target = job.target.model_copy(update={"path": f"s3://{s3_bucket}/nothing"})
    with pytest.raises(ModelFilesError, match=r"^target\.path: .* holds no model files"):
        fetched_models(job.model_copy(update={"target": target}))
