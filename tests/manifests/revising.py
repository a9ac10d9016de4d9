"""Revisions of small stored jobs, committed the way workers do it, without a model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from manifests.documents import encode
from manifests.hashing import sha256_hex
from manifests.open_revision import OpenRevision, create_revision, open_revision
from manifests.plan import plan_hash
from manifests.protocol import CommitOutcome, read_seal
from manifests.records import CommitRecord
from manifests.revision import RevisedShard, Revision
from tests.manifests.builders import CREATED, StoredJob

Rows = Mapping[int, Sequence[int] | None]
AGAIN = [7, 8, 9]  # token ids of rows that were decoded again


def decision(
    job: StoredJob,
    rows: Rows,
    *,
    reason: str = "errors",
    overrides: Mapping[str, Any] | None = None,
    created: str = CREATED,
) -> Revision:
    """A decision about rows by shard (None: all), going out from the seal that counts."""
    seal = read_seal(job.store)
    assert seal is not None
    return Revision(
        revision=seal.revision + 1,
        parent=seal.revision,
        parent_sha256=sha256_hex(encode(seal)),
        plan_sha256=plan_hash(job.plan),
        reason=reason,
        shards=tuple(
            RevisedShard(shard=shard, rows=None if chosen is None else tuple(chosen))
            for shard, chosen in sorted(rows.items())
        ),
        overrides=dict(overrides or {}),
        created=created,
    )


def revise(
    job: StoredJob, rows: Mapping[int, Sequence[int] | None], **options: Any
) -> OpenRevision:
    """Open a revision."""
    opened = create_revision(job.store, job.plan, decision(job, rows, **options))
    assert opened is not None
    return opened


def current(job: StoredJob) -> OpenRevision:
    """What the job has open."""
    opened = open_revision(job.store, job.plan)
    assert opened is not None
    return opened


def revised_values(job: StoredJob, opened: OpenRevision, shard: int, *, attempt: str) -> Any:
    """Output rows of an attempt: chosen ones with other tokens, the others copied."""
    chosen = opened.rows(shard)
    again = job.output_values(shard, attempt=attempt)
    for value in again:
        if value.get("error_class") is None:
            value.update(token_ids=AGAIN, tokens=len(AGAIN), text="again")
    if chosen is None:
        return again
    with job.store.open_local(opened.copied_from(shard).data_key) as path:
        parent = pq.read_table(path).to_pylist()
    return [new if new["row"] in chosen else old for new, old in zip(again, parent, strict=True)]


def revised_file(
    job: StoredJob, opened: OpenRevision, shard: int, *, attempt: str
) -> tuple[CommitRecord, Path]:
    """A data file of a revision and its record, ready to be committed."""
    values = revised_values(job, opened, shard, attempt=attempt)
    path = job.attempt_file(shard, attempt=attempt, values=values, revision=opened.number)
    return job.record(shard, attempt=attempt, path=path, revision=opened.number), path


def commit_revised(
    job: StoredJob, opened: OpenRevision, shard: int, *, attempt: str
) -> CommitOutcome:
    """Decode and commit a shard of a revision, faithfully."""
    record, path = revised_file(job, opened, shard, attempt=attempt)
    return opened.commit(record, data_path=path)
