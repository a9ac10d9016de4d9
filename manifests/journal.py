"""Writing and reading what only informs people and budgets: failures, announcements, presence.

None of it is truth: what is lost here costs work, never output.
"""

from contextlib import suppress

from manifests.documents import encode, read_document
from manifests.errors import DamagedError, MissingError, RefusedError
from manifests.keys import (
    FAILURES_PREFIX,
    PRESENCE_PREFIX,
    announced_prefix,
    announcement_key,
    failure_key,
    log_key,
    presence_key,
)
from manifests.records import Announcement, Failure, Presence
from manifests.store.base import Store


def write_failure(store: Store, failure: Failure) -> None:
    """Leave a failed attempt's reason; the first report about an attempt stays."""
    with suppress(RefusedError):
        store.put_if_absent(failure_key(failure.shard, failure.attempt), encode(failure))


def write_log(store: Store, *, shard: int, attempt: str, tail: bytes) -> None:
    """Leave the end of a failed attempt's log; the first one about an attempt stays."""
    with suppress(RefusedError):
        store.put_if_absent(log_key(shard, attempt), tail)


def read_failures(store: Store) -> list[Failure]:
    """All failures, in order of shard and then time."""
    failures = [read_document(store, Failure, key) for key in store.list(FAILURES_PREFIX)]
    return sorted(failures, key=lambda failure: (failure.shard, failure.time))


def write_announcement(store: Store, announcement: Announcement) -> None:
    """Announce a row, durably; the row may start when this returns."""
    key = announcement_key(announcement.shard, announcement.attempt, announcement.row)
    with suppress(RefusedError):
        store.put_if_absent(key, encode(announcement))


def last_announcement(store: Store, shard: int, *, epoch: str, worker: str) -> Announcement | None:
    """What this driver's worker announced last about a shard, if it announced anything.

    `worker` is its name, without the host.
    """
    last_of_attempt = {key.rpartition("-")[0]: key for key in store.list(announced_prefix(shard))}
    found = [read_document(store, Announcement, key) for key in last_of_attempt.values()]
    mine = [
        said for said in found if (said.epoch, said.worker.partition("@")[0]) == (epoch, worker)
    ]
    return max(mine, key=lambda said: said.time, default=None)


def write_presence(store: Store, presence: Presence) -> None:
    """Replace what this driver said before."""
    store.put_advisory(presence_key(presence.epoch), encode(presence))


def read_presences(store: Store) -> list[Presence]:
    """What every driver said last, in the order of their epochs; damaged ones say nothing."""
    found = []
    for key in store.list(PRESENCE_PREFIX):
        with suppress(DamagedError, MissingError):
            found.append(read_document(store, Presence, key))
    return found


def latest_presence(store: Store) -> Presence | None:
    """What the driver that spoke last has said; presence that cannot be read says nothing."""
    return max(read_presences(store), key=lambda presence: presence.updated, default=None)
