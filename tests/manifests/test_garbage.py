"""Garbage: what no seal names and no attempt can make count any more."""

from pathlib import Path

import pytest

from manifests.control import ask_driver, requests_to
from manifests.garbage import delete_all, find_garbage
from manifests.journal import write_announcement, write_presence
from manifests.keys import announcement_key, control_key, data_key
from manifests.open_revision import OpenRevision
from manifests.records import Announcement, Presence
from manifests.verification import verify_structure
from tests.manifests.builders import CREATED, StoredJob
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


def announced(job: StoredJob, shard: int) -> str:
    """What an attempt says that decodes a row alone; its key."""
    announcement = Announcement(
        shard=shard, attempt=LOSER, row=1, epoch="gone", worker="w", time=CREATED
    )
    write_announcement(job.store, announcement)
    return announcement_key(shard, LOSER, 1)


def test_announcements_about_sealed_shards_are_garbage(sealed_job: StoredJob) -> None:
    keys = [announced(sealed_job, shard) for shard in (0, 1)]
    assert find_garbage(sealed_job.store, sealed_job.plan) == keys
    opened = revise(sealed_job, {1: None})
    assert find_garbage(sealed_job.store, sealed_job.plan) == keys[:1]
    commit_revised(sealed_job, opened, 1, attempt=MINE)
    opened.seal()
    delete_all(sealed_job.store, find_garbage(sealed_job.store, sealed_job.plan))
    assert sealed_job.store.list("announced/") == []
    assert verify_structure(sealed_job.store) == []


def test_requests_to_drivers_that_have_said_goodbye_are_garbage(sealed_job: StoredJob) -> None:
    store = sealed_job.store
    for epoch, finished in (("gone", True), ("alive", False)):
        write_presence(store, said(epoch, finished=finished))
        ask_driver(store, epoch, "drain")
    ask_driver(store, "never-heard-of", "cancel")
    assert find_garbage(store, sealed_job.plan) == [control_key("gone", "drain")]
    delete_all(store, find_garbage(store, sealed_job.plan))
    assert requests_to(store, "alive") == {"drain"}
    assert len(store.list("presence/")) == 2


def test_nothing_that_was_said_in_a_job_without_a_seal_is_garbage(job: StoredJob) -> None:
    announced(job, 0)
    write_presence(job.store, said("gone", finished=True))
    ask_driver(job.store, "gone", "drain")
    assert find_garbage(job.store, job.plan) == []


def test_names_that_nobody_gives_to_announcements_and_requests_are_left_alone(
    sealed_job: StoredJob,
) -> None:
    for key in ("announced/notes.json", "control/notes.json", "input/notes.parquet"):
        sealed_job.store.put_if_absent(key, b"")
    assert find_garbage(sealed_job.store, sealed_job.plan) == []


def said(epoch: str, *, finished: bool) -> Presence:
    """What a driver says."""
    numbers = ("shards_done", "shards_total", "rows_done", "samples_ok", "samples_error", "tokens")
    return Presence(
        **dict.fromkeys((*numbers, "nfe", "workers"), 0),
        epoch=epoch,
        host="h",
        pid=1,
        updated=CREATED,
        rate_tokens_s=0.0,
        finished=finished,
    )
