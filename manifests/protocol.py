"""How work becomes truth: create-once commit records, then one seal.

`commit_shard` puts the data under a name that only this attempt uses, then the commit record under
the one name that the shard has in its revision; creating that record *is* the commit. An unknown
outcome is settled by asking again: a second create-if-absent either succeeds, or is refused, and
then the object that is there says whose it is. Nothing is ever deleted after an unknown outcome.
`seal_job` derives the seal from the records alone, so that any number of drivers write equal bytes.

Leases, heartbeats and messages decide who works next; none of them is needed for this to hold. What
a revision after the first run adds is in `manifests.open_revision`.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from manifests.documents import decode, encode, read_document
from manifests.errors import (
    DamagedError,
    ManifestError,
    MissingError,
    RefusedError,
    UnknownOutcomeError,
)
from manifests.hashing import sha256_file
from manifests.keys import SEALS_PREFIX, commit_key, commit_prefix, seal_key
from manifests.plan import Plan, plan_hash
from manifests.records import CommitRecord, Seal, SealedShard
from manifests.store.base import Store

_TRIES = 3
_READERS = 16  # records that are read at once; each is a request on a remote store


class CommitOutcome(NamedTuple):
    """Whether this attempt won, and the record that counts either way."""

    outcome: Literal["committed", "lost"]
    record: CommitRecord


def commit_shard(store: Store, *, record: CommitRecord, data_path: Path) -> CommitOutcome:
    """Publish an attempt's data file and try to make its record the one of the shard.

    Raises `UnknownOutcomeError` when storage never gives a definite answer; another attempt, or
    a later reader, finds out then.
    """
    if not _has_recorded_bytes(data_path, record=record):
        raise DamagedError(
            f"{record.data_key}: the local file changed before it was published; decode again"
        )
    _put_data(store, record=record, data_path=data_path)
    if create(lambda: store.put_if_absent(_record_key(record), encode(record))):
        return CommitOutcome("committed", record)
    counting = read_document(store, CommitRecord, _record_key(record))
    if counting.attempt == record.attempt:  # an earlier request took effect, its reply was lost
        return CommitOutcome("committed", counting)
    # A record names another attempt, so nothing can ever point at this one's data.
    with suppress(OSError):
        store.delete(record.data_key)
    return CommitOutcome("lost", counting)


def _record_key(record: CommitRecord) -> str:
    return commit_key(record.shard, record.revision)


def _has_recorded_bytes(path: Path, *, record: CommitRecord) -> bool:
    return (path.stat().st_size, sha256_file(path)) == (record.bytes, record.sha256)


def _put_data(store: Store, *, record: CommitRecord, data_path: Path) -> None:
    """The name is this attempt's alone, so a refusal means that an earlier request took effect."""
    if not create(lambda: store.put_file_if_absent(record.data_key, data_path)):
        with store.open_local(record.data_key) as path:
            if not _has_recorded_bytes(path, record=record):
                raise DamagedError(f"{record.data_key}: it is there with other bytes; try again")


def create(put: Callable[[], None]) -> bool:
    """Whether the object was created (else it is there already), asked until that is certain."""
    for _ in range(_TRIES):
        try:
            put()
            return True
        except RefusedError:
            return False
        except UnknownOutcomeError as error:
            unknown = error
    raise unknown


def read_record(store: Store, plan: Plan, shard: int, *, revision: int = 0) -> CommitRecord | None:
    """The commit record of one shard, or None; damage is an error, never absence."""
    return _read_record(store, shard, revision=revision, plan_sha256=plan_hash(plan))


def _read_record(
    store: Store, shard: int, *, revision: int, plan_sha256: str
) -> CommitRecord | None:
    key = commit_key(shard, revision)
    try:
        data = store.get(key)
    except MissingError:
        return None
    record = decode(CommitRecord, data, key=key)
    if (record.shard, record.revision) != (shard, revision):
        raise DamagedError(
            f"{key}: it is the record of shard {record.shard} in revision {record.revision}"
        )
    if record.plan_sha256 != plan_sha256:
        raise DamagedError(f"{key}: it belongs to another plan")
    return record


def list_committed(store: Store, *, revision: int = 0, shards: Iterable[int]) -> list[int]:
    """Which of these shards have a commit record in a revision: none is read, only listed.

    A record of any other shard is damage.
    """
    shard_of_key = {commit_key(shard, revision): shard for shard in shards}
    keys = store.list(commit_prefix(revision))
    for key in keys:
        if key not in shard_of_key:
            raise DamagedError(f"{key}: revision {revision} has no such shard")
    return [shard_of_key[key] for key in keys]


def read_records(
    store: Store, plan: Plan, *, revision: int = 0, shards: Iterable[int] | None = None
) -> dict[int, CommitRecord]:
    """All commit records of a revision by shard, in shard order.

    A record of any other than the given shards (default: all that are planned) is damage.
    """
    known = range(len(plan.shards)) if shards is None else shards
    committed = list_committed(store, revision=revision, shards=known)
    read = partial(_read_listed, store, revision=revision, plan_sha256=plan_hash(plan))
    with ThreadPoolExecutor(_READERS) as readers:
        return dict(readers.map(read, committed))


def _read_listed(
    store: Store, shard: int, *, revision: int, plan_sha256: str
) -> tuple[int, CommitRecord]:
    record = _read_record(store, shard, revision=revision, plan_sha256=plan_sha256)
    if record is None:
        raise DamagedError(f"{commit_key(shard, revision)}: it was listed, but cannot be read")
    return shard, record


def seal_job(store: Store, plan: Plan) -> Seal:
    """Write the seal of the first run, or find an equal one; needs the record of every shard."""
    records = read_records(store, plan)
    require_all(records, shards=(shard.shard for shard in plan.shards))
    return put_seal(store, build_seal(plan, records=records.values()))


def require_all(records: Iterable[int], *, shards: Iterable[int]) -> None:
    """Raise `ManifestError` unless every one of the shards has a record."""
    missing = sorted(set(shards) - set(records))
    if missing:
        raise ManifestError(
            f"shard {missing[0]} and {len(missing) - 1} more have no commit record; run the job on"
        )


def put_seal(store: Store, seal: Seal) -> Seal:
    """Create a seal, or find an equal one; another one is damage, and stops the job."""
    key, data = seal_key(seal.revision), encode(seal)
    if not create(lambda: store.put_if_absent(key, data)) and store.get(key) != data:
        raise DamagedError(f"{key}: it does not fit the commit records")
    return seal


def build_seal(plan: Plan, *, records: Iterable[CommitRecord]) -> Seal:
    """The seal over some records: a function of plan and records, without a clock."""
    ordered = sorted(records, key=lambda record: record.shard)
    return Seal(
        plan_sha256=plan_hash(plan),
        shards=tuple(sealed_shard(record) for record in ordered),
        rows=sum(record.rows for record in ordered),
        samples=sum(record.samples for record in ordered),
        ok=sum(record.ok for record in ordered),
        errors=sum(record.errors for record in ordered),
        sealed=max((record.committed for record in ordered), default=plan.created),
    )


def sealed_shard(record: CommitRecord) -> SealedShard:
    """A record as a seal names it."""
    return SealedShard(
        shard=record.shard,
        record_key=_record_key(record),
        data_key=record.data_key,
        sha256=record.sha256,
        samples=record.samples,
        ok=record.ok,
        errors=record.errors,
    )


def read_seals(store: Store) -> list[Seal]:
    """All seals, the one that counts last; `DamagedError` for anything else in their place."""
    seals = []
    for revision, key in enumerate(store.list(SEALS_PREFIX)):
        seal = read_document(store, Seal, key)
        if not key == seal_key(revision) == seal_key(seal.revision):
            raise DamagedError(f"{key}: it is not the seal of revision {revision}")
        seals.append(seal)
    return seals


def read_seal(store: Store) -> Seal | None:
    """The highest seal, or None while the job is not complete."""
    keys = store.list(SEALS_PREFIX)
    if not keys:
        return None
    seal = read_document(store, Seal, keys[-1])
    if keys[-1] != seal_key(seal.revision):
        raise DamagedError(f"{keys[-1]}: it is the seal of revision {seal.revision}")
    return seal
