"""What the driver reads and writes in the job's storage: one run of one job, under one epoch.

Truth is what `manifests.protocol` reads; the rest informs people, budgets and the next driver.
Methods may be called from several threads at once.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from manifests.control import Request, requests_to
from manifests.errors import ManifestError, MissingError
from manifests.journal import last_announcement, read_failures, write_failure, write_presence
from manifests.keys import new_attempt_id
from manifests.open_revision import OpenRevision
from manifests.records import CommitRecord, Failure, Presence, Seal
from schedulers.suspicion import Death


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAttempt:
    """An attempt that ended with its worker."""

    shard: int
    worker: str
    message: str
    is_death: bool
    """Its rows may have done it."""
    row_by_row: bool = False
    attempt: str | None = None
    """As far as it was heard of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The storage side of one run."""

    revision: OpenRevision
    epoch: str

    def record(self, shard: int) -> CommitRecord | None:
        """The commit record of a shard; damage is an error, never absence."""
        return self.revision.read_record(shard)

    def seal(self) -> Seal:
        """Write the seal, or find an equal one."""
        return self.revision.seal()

    def deaths(self) -> list[Death]:
        """Under which shards and rows of this revision workers have died, in order of time."""
        failures = sorted(read_failures(self.revision.store), key=lambda failure: failure.time)
        return [
            Death(failure.shard, failure.row)
            for failure in failures
            if failure.is_death and failure.revision == self.revision.number
        ]

    def announced_row(self, shard: int, *, worker: str) -> int | None:
        """The row that the worker was decoding alone; None if none, or if all got through."""
        said = last_announcement(self.revision.store, shard, epoch=self.epoch, worker=worker)
        if said is None or said.row >= self.revision.plan.shards[shard].rows:
            return None
        return said.row

    def leave_failure(self, lost: LostAttempt, *, row: int | None) -> None:
        """Leave a record of an attempt whose worker cannot do it any more."""
        is_death = lost.is_death and (row is not None or not lost.row_by_row)
        failure = Failure(
            shard=lost.shard,
            revision=self.revision.number,
            attempt=lost.attempt or new_attempt_id(),
            kind="rows" if is_death else "infrastructure",
            error_class="WorkerLost",
            message=lost.message,
            is_death=is_death,
            row=row,
            worker=lost.worker,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        with suppress(OSError, ManifestError):  # it only informs
            write_failure(self.revision.store, failure)

    def requests(self) -> set[Request]:
        """What was asked of this driver from elsewhere; an unreachable store asks for nothing."""
        try:
            return requests_to(self.revision.store, self.epoch)
        except (OSError, MissingError):
            return set()

    def store_presence(self, presence: Presence) -> None:
        """Say where the job stands."""
        with suppress(OSError, ManifestError):  # it only informs
            write_presence(self.revision.store, presence)
