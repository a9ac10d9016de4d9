"""Fixtures of the manifests tests."""

from pathlib import Path

import pytest

from manifests.protocol import seal_job
from tests.manifests.builders import StoredJob, make_job


@pytest.fixture
def job(tmp_path: Path) -> StoredJob:
    """A planned job of two shards, five rows, two samples a row; nothing committed."""
    return make_job(tmp_path)


@pytest.fixture
def sealed_job(job: StoredJob) -> StoredJob:
    """The same job, complete."""
    for shard in job.plan.shards:
        job.commit(shard.shard)
    seal_job(job.store, job.plan)
    return job
