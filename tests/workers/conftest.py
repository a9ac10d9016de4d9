"""A planned job of two shards with three and two rows, two samples each, and a random target."""

from pathlib import Path

import pytest

from spot.targets.paged import PagedTarget
from tests.manifests.builders import StoredJob, make_job
from tests.workers.engines import make_target


@pytest.fixture
def job(tmp_path: Path) -> StoredJob:
    """The job; the last row of its last shard has trouble that planning found."""
    return make_job(tmp_path)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> PagedTarget:
    """A random target of the SDAR layout, on one thread."""
    return make_target(tmp_path_factory.mktemp("twin"))
