"""How a complete job grows, as a process that may have been begun by one that died.

Nine steps change storage: a staged file that no decision will name, the staged file of the appended
rows, the decision, data and record of two new shards, the seal, and the collection of that file.
"""

from pathlib import Path

from manifests.garbage import delete_all, find_garbage
from manifests.keys import new_attempt_id
from manifests.open_revision import create_revision, open_revision
from manifests.protocol import read_seal, seal_job
from manifests.store import Store
from tests.manifests.builders import StoredJob, make_job
from tests.manifests.extending import Appended, appended
from tests.manifests.revising import commit_revised

NUM_STEPS = 9
NUM_DECIDING_STEPS = 3


def complete(store: Store, scratch: Path) -> StoredJob:
    """The job before it grows."""
    job = make_job(scratch, store=store)
    for shard in job.plan.shards:
        job.commit(shard.shard)
    seal_job(store, job.plan)
    return job


def grow(job: StoredJob, *, ours: Appended, lost: Appended) -> StoredJob:
    """Bring the job to the end of its extension by `ours`; `lost` is staged and not decided on."""
    seal = read_seal(job.store)
    if open_revision(job.store, job.plan) is None and seal is not None and not seal.revision:
        lost.publish(job)
        ours.publish(job)
        create_revision(job.store, job.plan, ours.decision)
    job = ours.grown(job)
    _decode(job)
    delete_all(job.store, find_garbage(job.store, job.plan))
    return job


def _decode(job: StoredJob) -> None:
    opened = open_revision(job.store, job.plan)
    if opened is None:
        return
    done = opened.read_records()
    for shard in opened.shards:
        if shard.shard not in done:
            commit_revised(job, opened, shard.shard, attempt=new_attempt_id())
    opened.seal()


def both(job: StoredJob) -> tuple[Appended, Appended]:
    """What is appended, and what somebody else would have appended."""
    return appended(job), appended(job, (1,), mark="lost")
