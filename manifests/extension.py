"""Rows that were appended to the input of a planned job, as a revision carries them.

The plan is never changed: an extension adds shards behind its last one, and `extended` is the plan
that every reader works with from then on. It is the same job, so it keeps the hash of the stored
plan, which records and seals carry.

Shards of appended rows end where those of a plan over all rows would end, and have its seeds: a
shard that was short stays as it is, and the rows that would have filled it up make a shard that
goes on counting. Their samples are therefore those of a job planned with all rows at once.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from manifests.documents import Document
from manifests.fingerprints import FileIdentity, fingerprint
from manifests.plan import Count, Plan, ShardPlan, shard_seed


class AppendedShard(ShardPlan):
    """One line of an extension's shard table."""

    before: Count  # rows of the planned shards' grid that are in an earlier shard

    @property
    def num_before(self) -> int:
        """Rows that the noise of this shard counts in front of its own."""
        return self.before


class Extension(Document):
    """What an extension adds, and what the whole job is with it."""

    input: tuple[FileIdentity, ...]  # all files, as they are now
    staged: Annotated[tuple[FileIdentity, ...], Field(min_length=1)]  # of the appended rows
    rows_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # `RowsDigest` of all rows
    rows: Count  # of the whole job
    shards: Annotated[tuple[AppendedShard, ...], Field(min_length=1)]  # of the appended rows

    @property
    def num_rows(self) -> int:
        """How many rows are appended."""
        return sum(shard.rows for shard in self.shards)

    def misfit(self, plan: Plan) -> str | None:
        """Why it cannot be appended to a plan, if it cannot."""
        for shard in self.shards:
            if place_in_grid(plan, shard.first_row) != (shard.seed, shard.before):
                return f"shard {shard.shard} has not the seed of its place"
        try:
            extended(plan, self, revision=0)
        except ValidationError as error:
            return f"its shards do not follow those of the plan ({error.errors()[0]['msg']})"
        return None


class ExtendedPlan(Plan):
    """A plan and what was appended to it; made from documents, and never stored itself."""

    created_plan: Plan
    revisions: tuple[int, ...]

    @model_validator(mode="after")
    def _parts_are_new(self) -> "ExtendedPlan":
        if len({identity.path for identity in self.staged}) != len(self.staged):
            raise ValueError("two of its staged files have one name")
        return self

    @property
    def as_created(self) -> Plan:
        """The plan as it is stored, without rows that were appended since."""
        return self.created_plan

    @property
    def extended_in(self) -> tuple[int, ...]:
        """The revisions that appended rows to it."""
        return self.revisions


def place_in_grid(plan: Plan, row: int) -> tuple[int, int]:
    """The seed of the shard that a plan over all rows has a row in, and the row's index there."""
    shard, index = divmod(row, plan.job.shards.rows)
    return shard_seed(plan.job.seed.value, shard), index


def appended_shards(plan: Plan, staged: Sequence[ShardPlan]) -> tuple[AppendedShard, ...]:
    """Staged shards as those that follow the plan's."""
    return tuple(
        AppendedShard(
            **shard.model_dump(exclude={"shard", "seed"}), shard=number, seed=seed, before=before
        )
        for number, shard in enumerate(staged, start=len(plan.shards))
        for seed, before in [place_in_grid(plan, shard.first_row)]
    )


def extended(plan: Plan, extension: Extension, *, revision: int) -> ExtendedPlan:
    """The plan with the rows that a revision appends; `ValidationError` if they do not follow."""
    fields = {name: getattr(plan, name) for name in Plan.model_fields}
    changed = {
        "input": extension.input,
        "staged": (*plan.staged, *extension.staged),
        "rows_sha256": extension.rows_sha256,
        "rows": extension.rows,
        "shards": (*plan.shards, *extension.shards),
        "fingerprint": fingerprint(
            plan.job,
            input_files=extension.input,
            target_files=plan.target_files,
            drafter_files=plan.drafter_files,
        ),
        "created_plan": plan.as_created,
        "revisions": (*plan.extended_in, revision),
    }
    return ExtendedPlan(**(fields | changed))
