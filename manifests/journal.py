"""Writing and reading what only informs people and budgets: failures and presence."""

from contextlib import suppress

from manifests.documents import encode, read_document
from manifests.errors import DamagedError, MissingError, RefusedError
from manifests.keys import FAILURES_PREFIX, PRESENCE_PREFIX, failure_key, presence_key
from manifests.records import Failure, Presence
from manifests.store.base import Store


def write_failure(store: Store, failure: Failure) -> None:
    """Leave a failed attempt's reason; the first report about an attempt stays."""
    with suppress(RefusedError):
        store.put_if_absent(failure_key(failure.shard, failure.attempt), encode(failure))


def read_failures(store: Store) -> list[Failure]:
    """All failures, in order of shard and then time."""
    failures = [read_document(store, Failure, key) for key in store.list(FAILURES_PREFIX)]
    return sorted(failures, key=lambda failure: (failure.shard, failure.time))


def write_presence(store: Store, presence: Presence) -> None:
    """Replace what this driver said before."""
    store.put_advisory(presence_key(presence.epoch), encode(presence))


def latest_presence(store: Store) -> Presence | None:
    """What the driver that spoke last has said; presence that cannot be read says nothing."""
    found = []
    for key in store.list(PRESENCE_PREFIX):
        with suppress(DamagedError, MissingError):
            found.append(read_document(store, Presence, key))
    return max(found, key=lambda presence: presence.updated, default=None)
