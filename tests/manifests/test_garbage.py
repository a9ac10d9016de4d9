"""Garbage: what no seal names and no attempt can make count any more."""

from pathlib import Path

import pytest

from manifests.garbage import delete_all, find_garbage
from manifests.keys import data_key
from manifests.open_revision import OpenRevision
from manifests.verification import verify_structure
from tests.manifests.builders import StoredJob
from tests.manifests.faulty_store import FaultyStore
from tests.manifests.revising import commit_revised, revise

MINE = "a" * 16
LOSER = "f" * 16


def plant(job: StoredJob, shard: int, *, attempt: str = LOSER) -> str:
    """A data file without a record."""
    key = data_key(shard, attempt)
    job.store.put_file_if_absent(key, job.attempt_file(shard, attempt=attempt))
    return key


def test_nothing_of_a_job_without_a_seal_is_garbage(job: StoredJob) -> None:
    job.commit(0)
    plant(job, 0)
    plant(job, 1)
    assert find_garbage(job.store, job.plan) == []


def test_a_file_that_no_seal_names_is_garbage(sealed_job: StoredJob) -> None:
    before = sealed_job.store.list("")
    keys = [plant(sealed_job, shard) for shard in (0, 1)]
    assert find_garbage(sealed_job.store, sealed_job.plan) == keys
    delete_all(sealed_job.store, keys)
    delete_all(sealed_job.store, keys)
    assert sealed_job.store.list("") == before
    assert verify_structure(sealed_job.store) == []


def test_a_name_that_no_attempt_gives_is_left_alone(sealed_job: StoredJob) -> None:
    sealed_job.store.put_if_absent("data/notes.txt", b"")
    assert find_garbage(sealed_job.store, sealed_job.plan) == []


def test_files_of_shards_that_an_open_revision_commits_are_left_alone(
    sealed_job: StoredJob,
) -> None:
    sure, unsure = plant(sealed_job, 0), plant(sealed_job, 1)
    opened = revise(sealed_job, {1: None})
    assert find_garbage(sealed_job.store, sealed_job.plan) == [sure]
    commit_revised(sealed_job, opened, 1, attempt=MINE)
    assert find_garbage(sealed_job.store, sealed_job.plan) == [sure]
    opened.seal()
    assert find_garbage(sealed_job.store, sealed_job.plan) == [sure, unsure]


def test_a_file_put_while_a_revision_opens_is_not_taken_for_garbage(
    sealed_job: StoredJob,
) -> None:
    made: list[OpenRevision] = []

    def open_and_put() -> None:
        made.append(revise(sealed_job, {1: None}))
        plant(sealed_job, 1, attempt=MINE)

    store = FaultyStore(sealed_job.store, script=[])
    store.before["get revisions/0001.json"] = open_and_put
    assert find_garbage(store, sealed_job.plan) == []
    assert made


@pytest.mark.parametrize(("superseded", "count"), [(False, 0), (True, 1)])
def test_superseded_files_are_garbage_only_if_told(
    sealed_job: StoredJob, superseded: bool, count: int
) -> None:
    opened = revise(sealed_job, {0: (1,)})
    commit_revised(sealed_job, opened, 0, attempt=MINE)
    opened.seal()
    keys = find_garbage(sealed_job.store, sealed_job.plan, superseded=superseded)
    assert keys == [data_key(0, "0" * 16)][:count]
    delete_all(sealed_job.store, keys)
    assert verify_structure(sealed_job.store) == []


def test_a_file_that_an_open_revision_copies_from_is_never_garbage(sealed_job: StoredJob) -> None:
    revise(sealed_job, {0: (1,)})
    assert find_garbage(sealed_job.store, sealed_job.plan, superseded=True) == []
    assert Path(sealed_job.store.uri).is_dir()
