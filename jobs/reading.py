"""Finding a job that exists, and which of its commit records count."""

from dataclasses import dataclass

from jobs.errors import NoJobError
from manifests.documents import read_document
from manifests.errors import DamagedError, MissingError
from manifests.plan import Plan, plan_hash, read_plan
from manifests.protocol import read_records, read_seal
from manifests.records import CommitRecord, Seal
from manifests.store import Store, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJob:
    """A job at the place that its plan is stored in."""

    store: Store
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The records that count, by shard: those that the seal names, or those there are so far."""

    records: dict[int, CommitRecord]
    seal: Seal | None

    @property
    def complete(self) -> bool:
        """Whether every shard is committed and sealed."""
        return self.seal is not None


def open_job(uri: str) -> OpenJob:
    """The job in the directory `uri`; `NoJobError` if there is none."""
    store = open_store(uri)
    try:
        return OpenJob(store=store, plan=read_plan(store))
    except MissingError:
        raise NoJobError(
            f"{uri}: there is no job here; give the output.uri of a job that was planned"
        ) from None


def read_committed(job: OpenJob) -> Committed:
    """What counts now; `DamagedError` names a record or seal that cannot be used."""
    seal = read_seal(job.store)
    if seal is None:
        return Committed(records=read_records(job.store, job.plan), seal=None)
    if seal.plan_sha256 != plan_hash(job.plan):
        raise DamagedError(f"the seal of {job.store.uri} belongs to another plan")
    records = {
        shard.shard: read_document(job.store, CommitRecord, shard.record_key)
        for shard in seal.shards
    }
    return Committed(records=records, seal=seal)
