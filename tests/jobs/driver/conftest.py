"""A planned job of four shards without a model."""

from pathlib import Path

import pytest

from tests.manifests.builders import StoredJob, make_job


@pytest.fixture
def job(tmp_path: Path) -> StoredJob:
    """The job."""
    return make_job(tmp_path, counts=(2, 2, 2, 2))
