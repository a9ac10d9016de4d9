"""A planned job of two shards with three and two rows, two samples each."""

from pathlib import Path

import pytest

from tests.manifests.builders import StoredJob, make_job


@pytest.fixture
def job(tmp_path: Path) -> StoredJob:
    """The job; the last row of its last shard has trouble that planning found."""
    return make_job(tmp_path)
