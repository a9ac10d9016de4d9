"""Which files nobody can ever need, decided from seals and revisions alone.

A file is garbage if no seal names it and no attempt can make a record name it any more. An attempt
belongs to a revision that was there before its file was; once that revision is sealed, every shard
of it has its record, and the attempt can only lose. So the files are listed *first*, then it is
seen which revision is open, and files of the shards that this one commits are left alone: one of
them may be an attempt's that has not come to its record yet.

A staged file says in its name which revision it was made for, 0 being the plan. Once that is there,
and names other files or none, nobody can ever decide on this one.

Announcements are read by the driver that has the shard open, so those of sealed shards are left
over; a request to a driver is left over once that driver has said goodbye. Plan, records, seals,
decisions, failures and presence are never deleted.
"""

from collections.abc import Iterable, Sequence, Set

from manifests.journal import read_presences
from manifests.keys import (
    ANNOUNCED_PREFIX,
    CONTROL_PREFIX,
    DATA_PREFIX,
    INPUT_PREFIX,
    REVISIONS_PREFIX,
    epoch_of_control,
    revision_of_staged,
    shard_of_announcement,
    shard_of_data,
)
from manifests.open_revision import open_revision, plan_at
from manifests.plan import Plan
from manifests.protocol import read_seals
from manifests.records import Seal
from manifests.store.base import Store

_LISTED = (DATA_PREFIX, INPUT_PREFIX, ANNOUNCED_PREFIX, CONTROL_PREFIX)


def find_garbage(store: Store, plan: Plan, *, superseded: bool = False) -> list[str]:
    """Keys of files to delete, in order; with `superseded`, those of older seals as well.

    Nothing of a job that has no seal. Names that nobody gives are left alone. Raises
    `DamagedError` for a seal or revision that cannot be used.
    """
    data, staged, announced, asked = (store.list(prefix) for prefix in _LISTED)  # see above
    opened = open_revision(store, plan)
    uncertain = {shard.shard for shard in opened.shards} if opened is not None else set()
    seals = read_seals(store)  # an open first run leaves every shard uncertain
    if not seals:
        return []
    return [
        *_data_garbage(data, seals[-1:] if superseded else seals, uncertain=uncertain),
        *_staged_garbage(store, plan, staged),
        *(key for key in announced if _is_certain(shard_of_announcement(key), uncertain)),
        *_asked_garbage(store, asked),
    ]


def _data_garbage(keys: Iterable[str], seals: Sequence[Seal], *, uncertain: Set[int]) -> list[str]:
    named = {sealed.data_key for seal in seals for sealed in seal.shards}
    return [key for key in keys if key not in named and _is_certain(shard_of_data(key), uncertain)]


def _is_certain(shard: int | None, uncertain: Set[int]) -> bool:
    return shard is not None and shard not in uncertain


def _staged_garbage(store: Store, plan: Plan, keys: Iterable[str]) -> list[str]:
    decided = len(store.list(REVISIONS_PREFIX))
    named = {identity.path for identity in plan_at(store, plan, decided).staged}
    return [
        key
        for key in keys
        if (revision := revision_of_staged(key)) is not None
        and revision <= decided
        and key not in named
    ]


def _asked_garbage(store: Store, keys: Sequence[str]) -> list[str]:
    if not keys:
        return []
    gone = {presence.epoch for presence in read_presences(store) if presence.finished}
    return [key for key in keys if epoch_of_control(key) in gone]


def delete_all(store: Store, keys: Iterable[str]) -> None:
    """Delete; a key that is gone already is success, so that an interrupted run can be repeated."""
    for key in keys:
        store.delete(key)
