"""Finding a job that exists, and which of its commit records count."""

from dataclasses import dataclass

from jobs.errors import JobError, NoJobError
from manifests.documents import read_document
from manifests.errors import DamagedError, MissingError
from manifests.open_revision import latest_plan
from manifests.plan import Plan, plan_hash, read_plan
from manifests.protocol import read_records, read_seal, read_seals
from manifests.records import CommitRecord, Seal
from manifests.store import Store, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJob:
    """A job at the place that its plan is stored in."""

    store: Store
    plan: Plan
    """With all rows that were appended since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The records that count, by shard: those that the seal names, or those there are so far."""

    records: dict[int, CommitRecord]
    seal: Seal | None
    num_shards: int
    """That the job has, also those that were appended and are still to be decoded."""
    superseded: tuple[CommitRecord, ...] = ()
    """Records that earlier seals named in place of those."""

    @property
    def all_records(self) -> list[CommitRecord]:
        """Whatever was spent on the job is in one of them."""
        return [*self.superseded, *self.records.values()]

    @property
    def complete(self) -> bool:
        """Whether every shard is committed and sealed."""
        return self.seal is not None and len(self.records) == self.num_shards


def open_job(uri: str) -> OpenJob:
    """The job in the directory `uri`; `NoJobError` if there is none."""
    return open_job_in(open_store(uri), uri=uri)


def open_job_in(store: Store, *, uri: str) -> OpenJob:
    """The job in a store; `NoJobError` with the name that people have for it if there is none."""
    try:
        plan = read_plan(store)
    except MissingError:
        raise NoJobError(
            f"{uri}: there is no job here; give the output.uri of a job that was planned"
        ) from None
    return OpenJob(store=store, plan=latest_plan(store, plan))


def require_seal(job: OpenJob) -> Seal:
    """The seal that counts; `JobError` where the job is not complete."""
    seal = _seal(job)
    if seal is None:
        raise JobError(
            f"{job.store.uri} is not complete, so nothing of it counts yet; finish it with "
            "`spotbatch run`"
        )
    return seal


def _seal(job: OpenJob) -> Seal | None:
    seal = read_seal(job.store)
    if seal is not None and seal.plan_sha256 != plan_hash(job.plan):
        raise DamagedError(f"the seal of {job.store.uri} belongs to another plan")
    return seal


def read_committed(job: OpenJob) -> Committed:
    """What counts now; `DamagedError` names a record or seal that cannot be used."""
    seal = _seal(job)
    num_shards = len(job.plan.shards)
    if seal is None:
        records = read_records(job.store, job.plan)
        return Committed(records=records, seal=None, num_shards=num_shards)
    records = {
        shard.shard: read_document(job.store, CommitRecord, shard.record_key)
        for shard in seal.shards
    }
    return Committed(
        records=records, seal=seal, num_shards=num_shards, superseded=_superseded(job, seal)
    )


def _superseded(job: OpenJob, seal: Seal) -> tuple[CommitRecord, ...]:
    if seal.revision == 0:
        return ()
    counting = {shard.record_key for shard in seal.shards}
    earlier = {shard.record_key for each in read_seals(job.store) for shard in each.shards}
    keys = sorted(earlier - counting)
    return tuple(read_document(job.store, CommitRecord, key) for key in keys)
