"""Failures and presence."""

from typing import Any

import pytest

from manifests.errors import DamagedError
from manifests.journal import (
    last_announcement,
    latest_presence,
    read_failures,
    write_announcement,
    write_failure,
    write_log,
    write_presence,
)
from manifests.keys import failure_key, log_key, presence_key
from manifests.records import Announcement, Failure, Presence
from tests.manifests.builders import StoredJob


def failure(**changes: Any) -> Failure:
    """A failure of shard 0."""
    fields = {
        "shard": 0,
        "attempt": "a" * 16,
        "kind": "rows",
        "error_class": "RuntimeError",
        "message": "m",
        "worker": "w",
        "time": "2026-01-01T00:00:00+00:00",
    }
    return Failure.model_validate(fields | changes)


def presence(**changes: Any) -> Presence:
    """What a driver says at its start."""
    counts = ("shards_done", "shards_total", "rows_done", "samples_ok", "samples_error", "tokens")
    fields = {
        **dict.fromkeys([*counts, "nfe", "workers", "pid"], 0),
        "epoch": "e1",
        "host": "h",
        "updated": "2026-01-01T00:00:00+00:00",
        "rate_tokens_s": 0.0,
        "finished": False,
    }
    return Presence.model_validate(fields | changes)


def test_failures_read_by_shard_and_time(job: StoredJob) -> None:
    late = failure(attempt="0" * 16, time="2026-01-02T00:00:00+00:00")
    other = failure(shard=1)
    for each in (other, late, failure()):
        write_failure(job.store, each)
    assert read_failures(job.store) == [failure(), late, other]


def test_the_first_report_about_an_attempt_stays(job: StoredJob) -> None:
    write_failure(job.store, failure())
    write_failure(job.store, failure(message="second"))
    assert read_failures(job.store) == [failure()]


def test_a_damaged_failure_is_named(job: StoredJob) -> None:
    key = failure_key(0, "a" * 16)
    job.store.put_if_absent(key, b"{")
    with pytest.raises(DamagedError, match=key):
        read_failures(job.store)


def test_a_job_that_never_ran_has_no_presence(job: StoredJob) -> None:
    assert latest_presence(job.store) is None


def test_the_driver_that_spoke_last_is_present(job: StoredJob) -> None:
    write_presence(job.store, presence(tokens=1))
    write_presence(job.store, presence(tokens=2))
    write_presence(job.store, presence(epoch="e0", updated="2025-01-01T00:00:00+00:00"))
    assert latest_presence(job.store) == presence(tokens=2)


def test_presence_that_cannot_be_read_says_nothing(job: StoredJob) -> None:
    write_presence(job.store, presence())
    job.store.put_advisory(presence_key("e2"), b"torn")
    assert latest_presence(job.store) == presence()


def test_the_first_log_of_an_attempt_stays(job: StoredJob) -> None:
    for tail in (b"first", b"second"):
        write_log(job.store, shard=0, attempt="a" * 16, tail=tail)
    assert job.store.get(log_key(0, "a" * 16)) == b"first"


def announcement(**changes: Any) -> Announcement:
    """A worker of driver e1 is about to decode row 2 of shard 0."""
    fields = {
        "shard": 0,
        "attempt": "a" * 16,
        "row": 2,
        "epoch": "e1",
        "worker": "w1@h",
        "time": "2026-01-01T00:00:02+00:00",
    }
    return Announcement.model_validate(fields | changes)


def test_the_last_announcement_of_a_worker_is_that_of_its_last_attempt(job: StoredJob) -> None:
    later = announcement(attempt="b" * 16, row=1, time="2026-01-01T00:00:05+00:00")
    before = announcement(row=1, time="2026-01-01T00:00:01+00:00")
    for each in (before, announcement(), later):
        write_announcement(job.store, each)
    assert last_announcement(job.store, 0, epoch="e1", worker="w1") == later


def test_announcements_of_other_drivers_workers_and_shards_are_not_its_own(job: StoredJob) -> None:
    others = ({"epoch": "e2"}, {"worker": "w2@h", "attempt": "b" * 16}, {"shard": 1})
    for changes in others:
        write_announcement(job.store, announcement(**changes))
    assert last_announcement(job.store, 0, epoch="e1", worker="w1") is None


def test_a_row_that_was_announced_is_not_announced_again(job: StoredJob) -> None:
    write_announcement(job.store, announcement())
    write_announcement(job.store, announcement(time="2026-01-02T00:00:00+00:00"))
    assert last_announcement(job.store, 0, epoch="e1", worker="w1") == announcement()
