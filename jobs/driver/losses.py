"""After a worker's end: what it committed with its last breath, and whose fault the end was."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from jobs.driver.ledger import Ledger, LostAttempt
from jobs.driver.notices import Gone
from manifests.records import CommitRecord
from schedulers.crew import Lease
from schedulers.events import Cause


class LivingNodes(Protocol):
    """Knows which nodes live."""

    def is_alive(self, node: str) -> bool:
        """Whether a node lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What storage and the cluster say about a worker that is gone."""

    worker: str
    cause: Cause
    records: Sequence[CommitRecord]
    """Of the shards that it held and that are committed."""
    announced: int | None
    """The row that it was decoding alone."""


def look_after(
    gone: Gone,
    *,
    leases: Iterable[Lease],
    running: Mapping[int, str],
    is_excused: bool,
    ledger: Ledger,
    nodes: LivingNodes,
) -> Loss:
    """Look, and leave a failure record for each shard that was not committed.

    `leases` are those that the worker held, `running` its attempts by shard as last heard; it is
    excused if its node drains.
    """
    cause = gone.cause
    if cause == "death" and (is_excused or not _lived_on(gone.node, nodes=nodes)):
        cause = "infrastructure"
    records = []
    announced = None
    for lease in leases:
        record = ledger.record(lease.shard)
        if record is not None:
            records.append(record)
            continue
        row = ledger.announced_row(lease.shard, worker=gone.worker) if lease.row_by_row else None
        announced = row if lease.row_by_row else announced
        if gone.left_records:
            continue
        is_death = cause == "death" or (cause == "stuck" and lease.phase == "decoding")
        lost = LostAttempt(
            shard=lease.shard,
            worker=gone.worker,
            message=gone.message,
            is_death=is_death,
            row_by_row=lease.row_by_row,
            attempt=running.get(lease.shard),
        )
        ledger.leave_failure(lost, row=row if is_death else None)
    return Loss(worker=gone.worker, cause=cause, records=records, announced=announced)


def _lived_on(node: str | None, *, nodes: LivingNodes) -> bool:
    """Whether the node outlived its worker; a worker that never had a place died by itself."""
    return node is None or nodes.is_alive(node)
