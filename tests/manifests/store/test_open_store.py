"""From a URI to a store."""

from pathlib import Path

import pytest

from manifests.errors import ManifestError
from manifests.store import open_store


def test_a_path_opens_a_local_store_with_an_absolute_uri(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_store("out/../job").uri == str(tmp_path / "job")


@pytest.mark.parametrize("prefix", ["file://", "file://localhost"])
def test_a_file_uri_opens_the_path_that_it_encodes(tmp_path: Path, prefix: str) -> None:
    assert open_store(f"{prefix}{tmp_path}/a%20b").uri == f"{tmp_path}/a b"


def test_an_s3_uri_opens_a_store_under_its_prefix() -> None:
    assert open_store("s3://bucket/team/job/").uri == "s3://bucket/team/job"


def test_a_job_in_s3_needs_a_prefix_of_its_own() -> None:
    with pytest.raises(ManifestError, match="a job needs a prefix of its own"):
        open_store("s3://bucket").probe()


@pytest.mark.parametrize("uri", ["gs://bucket/job", "file://host/job", "http://x/y"])
def test_other_schemes_are_refused_with_what_works(uri: str) -> None:
    with pytest.raises(ManifestError, match="use a local path, file:///absolute/path or s3://"):
        open_store(uri)
