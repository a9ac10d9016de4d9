"""Extensions of small stored jobs, made the way `spotbatch extend` makes them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from manifests.extension import Extension, appended_shards
from manifests.hashing import sha256_file
from manifests.keys import staged_key
from manifests.open_revision import OpenRevision, create_revision
from manifests.plan import ShardPlan
from manifests.protocol import create
from manifests.revision import RevisedShard, Revision
from manifests.staged import StagedRow
from tests.manifests.builders import INPUT_FILES, StoredJob, identity, write_staged
from tests.manifests.revising import decision

GROWN_SHA = "1" * 64
GROWN_INPUT = (INPUT_FILES[0].model_copy(update={"bytes": 11, "sha256": "c" * 64}),)


@dataclass(frozen=True, kw_only=True)
class Appended:
    """Rows behind those of a job: staged, and the decision about them."""

    rows: list[list[StagedRow]]  # by shard
    path: Path
    key: str
    decision: Revision

    def publish(self, job: StoredJob) -> None:
        """Put the staged file."""
        create(partial(job.store.put_file_if_absent, self.key, self.path))

    def grown(self, job: StoredJob) -> StoredJob:
        """The job with these rows."""
        plan = self.decision.plan_with(job.plan)
        return replace(job, plan=plan, rows=[*job.rows, *self.rows])


def appended(job: StoredJob, counts: Sequence[int] = (2, 1), *, mark: str = "new") -> Appended:
    """Shards of these sizes behind those of a complete job; `mark` makes rows differ."""
    rows = _rows(job.plan.rows, counts, mark=mark)
    path = job.scratch / f"{mark}-{job.plan.rows}.parquet"
    write_staged(path, rows)
    base = decision(job, {0: None}, reason=f"{sum(counts)} rows appended")
    key = staged_key(base.revision, 0, sha256=sha256_file(path))
    extension = Extension(
        input=GROWN_INPUT,
        staged=(identity(path, key=key),),
        rows_sha256=GROWN_SHA,
        rows=job.plan.rows + sum(counts),
        shards=appended_shards(job.plan, _shards(rows, part=key)),
    )
    shards = tuple(RevisedShard(shard=shard.shard) for shard in extension.shards)
    fields = base.model_dump(exclude={"shards", "extension"})
    made = Revision(**fields, shards=shards, extension=extension)
    return Appended(rows=rows, path=path, key=key, decision=made)


def _rows(first: int, counts: Sequence[int], *, mark: str) -> list[list[StagedRow]]:
    shards = []
    for count in counts:
        numbers = range(first, first + count)
        shards.append(
            [
                StagedRow(row=i, id=f"{mark}-{i}", prompt=f"prompt {i}", carried="{}")
                for i in numbers
            ]
        )
        first += count
    return shards


def _row(row: int, *, mark: str) -> StagedRow:
    return StagedRow(row=row, id=f"{mark}-{row}", prompt=f"prompt {row}", carried="{}")


def _shards(rows: Sequence[Sequence[StagedRow]], *, part: str) -> list[ShardPlan]:
    return [
        ShardPlan(
            shard=index,
            rows=len(of_shard),
            seed=0,
            expected_cost=1.0,
            first_row=of_shard[0].row,
            row_group=index,
            part=part,
        )
        for index, of_shard in enumerate(rows)
    ]


def extend(
    job: StoredJob, counts: Sequence[int] = (2, 1), *, mark: str = "new"
) -> tuple[StoredJob, OpenRevision]:
    """The job with rows appended, and the revision that has to decode them."""
    made = appended(job, counts, mark=mark)
    made.publish(job)
    opened = create_revision(job.store, job.plan, made.decision)
    assert opened is not None
    return made.grown(job), opened
