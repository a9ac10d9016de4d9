"""The whole life of a small job, as a process that may have been begun by one that died.

Twelve steps change storage: plan, data and record of two shards, seal, a file that nobody will
need, decision, data and record of the revision, its seal, and the collection of that file. Whoever
begins goes on with what is missing. Attempt ids are new each time; what is decoded is the same.
"""

import hashlib
from pathlib import Path

from manifests.committed import committed_rows
from manifests.errors import RefusedError
from manifests.garbage import delete_all, find_garbage
from manifests.keys import data_key, new_attempt_id
from manifests.open_revision import OpenRevision, create_revision, open_revision
from manifests.protocol import read_seal
from manifests.store import Store
from tests.manifests.builders import StoredJob, make_job
from tests.manifests.revising import commit_revised, decision

NUM_STEPS = 12
LOSER = data_key(1, "f" * 16)


def live(store: Store, scratch: Path) -> StoredJob:
    """Bring the job to its end."""
    job = make_job(scratch, store=store)
    while (opened := _next(job)) is not None:
        done = opened.read_records()
        for shard in opened.shards:
            if shard.shard not in done:
                commit_revised(job, opened, shard.shard, attempt=new_attempt_id())
        opened.seal()
    delete_all(store, find_garbage(store, job.plan))
    return job


def _next(job: StoredJob) -> OpenRevision | None:
    """What is to be carried out: what is open, else one revision, and no second one."""
    opened = open_revision(job.store, job.plan)
    seal = read_seal(job.store)
    if opened is not None or seal is None or seal.revision:
        return opened
    _put_loser(job)
    return create_revision(job.store, job.plan, decision(job, {0: (1,)}))


def _put_loser(job: StoredJob) -> None:
    """What an attempt leaves that woke up late and died."""
    try:
        job.store.put_file_if_absent(LOSER, job.attempt_file(1, attempt="f" * 16))
    except RefusedError:
        return


def tokens_digest(job: StoredJob) -> str:
    """One number for what counts: ids, samples and tokens of all rows in order."""
    seal = read_seal(job.store)
    assert seal is not None
    digest = hashlib.sha256()
    for table in committed_rows(job.store, job.plan, seal, columns=["id", "sample", "token_ids"]):
        digest.update(repr(table.to_pylist()).encode())
    return digest.hexdigest()
