"""Which files nobody can ever need, decided from seals and revisions alone.

A file is garbage if no seal names it and no attempt can make a record name it any more. An attempt
belongs to a revision that was there before its file was; once that revision is sealed, every shard
of it has its record, and the attempt can only lose. So the files are listed *first*, then it is
seen which revision is open, and files of the shards that this one commits are left alone: one of
them may be an attempt's that has not come to its record yet.

A staged file of appended rows says in its name which revision it was made for. Once that decision
is made, and names other files or none, nobody can ever decide on this one. The files of the plan
itself stay. Documents are never deleted.
"""

from collections.abc import Iterable, Set

from manifests.keys import (
    DATA_PREFIX,
    INPUT_PREFIX,
    REVISIONS_PREFIX,
    revision_of_appended,
    shard_of_data,
)
from manifests.open_revision import open_revision, plan_at
from manifests.plan import Plan
from manifests.protocol import read_seals
from manifests.store.base import Store


def find_garbage(store: Store, plan: Plan, *, superseded: bool = False) -> list[str]:
    """Keys of files to delete, in order; with `superseded`, those of older seals as well.

    Nothing of a job that has no seal. Names that nobody gives are left alone. Raises
    `DamagedError` for a seal or revision that cannot be used.
    """
    return _data_garbage(store, plan, superseded=superseded) + _input_garbage(store, plan)


def _input_garbage(store: Store, plan: Plan) -> list[str]:
    decided = len(store.list(REVISIONS_PREFIX))
    named = {identity.path for identity in plan_at(store, plan, decided).staged}
    return [
        key
        for key in store.list(INPUT_PREFIX)
        if (revision := revision_of_appended(key)) is not None
        and revision <= decided
        and key not in named
    ]


def _data_garbage(store: Store, plan: Plan, *, superseded: bool) -> list[str]:
    keys = store.list(DATA_PREFIX)  # before anything else: see above
    opened = open_revision(store, plan)
    uncertain = {shard.shard for shard in opened.shards} if opened is not None else set()
    seals = read_seals(store)  # an open first run leaves every shard uncertain
    counting = seals[-1:] if superseded else seals
    named = {sealed.data_key for seal in counting for sealed in seal.shards}
    return [key for key in keys if key not in named and _is_certain(key, uncertain=uncertain)]


def _is_certain(key: str, *, uncertain: Set[int]) -> bool:
    shard = shard_of_data(key)
    return shard is not None and shard not in uncertain


def delete_all(store: Store, keys: Iterable[str]) -> None:
    """Delete; a key that is gone already is success, so that an interrupted run can be repeated."""
    for key in keys:
        store.delete(key)
