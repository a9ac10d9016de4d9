"""What a revision is: some rows of a sealed job decoded once more, or new ones, beside the others.

The first run is revision 0 and needs no document. A later revision names its parent seal, the
shards or rows that it chooses and the settings under which these are decoded. It replaces nothing:
every chosen shard gets one more commit record, in the revision's own folder, and a seal of its own
says which record of every shard counts from then on. An extension chooses shards that are new, and
brings them along.

Rows that are not chosen are copied from the file that the parent seal names, so that a file is
always whole, and which settings a row was decoded under follows from the attempt it names.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, model_validator

from manifests.documents import Document
from manifests.errors import RevisionError
from manifests.extension import Extension, extended
from manifests.fingerprints import changed_fields, settings
from manifests.job import JobSpec
from manifests.plan import Plan
from manifests.records import Count, Sha256
from manifests.settings import Kind


class RevisedShard(Document):
    """One shard of a revision, and which of its rows are decoded again."""

    shard: Count
    rows: tuple[Count, ...] | None = None  # indices in the shard, ascending; None: all

    @model_validator(mode="after")
    def _ascending(self) -> "RevisedShard":
        if self.rows is not None and (not self.rows or not _ascends(self.rows)):
            raise ValueError(f"rows of shard {self.shard} are not one or more in ascending order")
        return self


class Revision(Document):
    """A decision, created once; `manifests.open_revision` carries it out."""

    version: Literal[1] = 1
    revision: Annotated[int, Field(ge=1)]
    parent: Count  # revision of the seal that it goes out from
    parent_sha256: Sha256  # of the stored bytes of that seal
    plan_sha256: Sha256
    reason: str  # how the rows were chosen, for people
    shards: Annotated[tuple[RevisedShard, ...], Field(min_length=1)]
    overrides: dict[str, JsonValue]  # settings of the chosen rows, by dotted name
    extension: Extension | None = None  # the chosen shards, where these are new
    created: str  # ISO 8601, UTC

    @model_validator(mode="after")
    def _consistent(self) -> "Revision":
        if self.parent != self.revision - 1:
            raise ValueError(f"the parent of revision {self.revision} is not the one before")
        if not _ascends([shard.shard for shard in self.shards]):
            raise ValueError("its shards are not in ascending order")
        if self.extension is not None:
            self._require_whole(self.extension)
        return self

    def _require_whole(self, extension: Extension) -> None:
        new = tuple(RevisedShard(shard=shard.shard) for shard in extension.shards)
        if self.shards != new or self.overrides:
            raise ValueError("an extension decodes the shards it appends, and no others")

    def plan_with(self, plan: Plan) -> Plan:
        """The job's plan from this revision on, out of that before it."""
        if self.extension is None:
            return plan
        return extended(plan, self.extension, revision=self.revision)

    def asks_the_same_as(self, other: "Revision") -> bool:
        """Whether two people who asked at different moments asked for one and the same thing."""
        return self.model_copy(update={"created": other.created}) == other

    def misfit(self, plan: Plan, *, plan_sha256: str, parent_sha256: str) -> str | None:
        """Why it is no decision about this job, if it is none; the plan is that before it."""
        if self.plan_sha256 != plan_sha256:
            return "it belongs to another plan"
        if self.parent_sha256 != parent_sha256:
            return f"it does not go out from the seal of revision {self.parent}"
        if self.extension is not None:
            return self.extension.misfit(plan)
        for shard in self.shards:
            if shard.shard >= len(plan.shards):
                return f"the plan has no shard {shard.shard}"
            if shard.rows and shard.rows[-1] >= plan.shards[shard.shard].rows:
                return f"shard {shard.shard} has no row {shard.rows[-1]}"
        return self._override_misfit(plan.job)

    def _override_misfit(self, job: JobSpec) -> str | None:
        for name in self.overrides:
            if not can_change(name):
                return f"no revision can change {name}"
        try:
            with_overrides(job, self.overrides)
        except (ValueError, KeyError, TypeError) as error:
            return f"its overrides cannot be used ({error})"
        return None


def _ascends(values: Iterable[int]) -> bool:
    return all(one < other for one, other in pairwise(values))


def overrides_between(job: JobSpec, revised: JobSpec) -> dict[str, Any]:
    """The settings that a revision has to carry so that `job` is decoded as `revised`.

    Operational settings belong to a run and are left out. `RevisionError` names a setting that no
    revision can change, since it decides which rows, columns or target the job has.
    """
    cause = job.decode.lets_drafts_matter
    kinds: set[Kind] = {"semantic"} if cause is None else {"semantic", "drafting"}
    old, new = (settings(each, kinds=kinds) for each in (job, revised))
    names = changed_fields(old, new)
    for name in names:
        if not can_change(name):
            raise RevisionError(
                f"a retry cannot change {name} (was {old[name]!r}, is {new[name]!r}): all rows of a"
                " job have it in common; plan another job with its own output.uri"
            )
    if cause is not None and revised.drafter.path != job.drafter.path:
        raise RevisionError(
            f"a retry cannot change drafter.path, since with {cause} drafts can change outputs; "
            "plan another job with its own output.uri"
        )
    return {name: new[name] for name in names}


def can_change(name: str) -> bool:
    """Whether a setting concerns single samples, so that one file may hold rows of both values."""
    samples = name.startswith("decode.") and name not in ("decode.numerics", "decode.verifier")
    return samples or name in ("drafter.method", "cluster.batch")


def with_overrides(job: JobSpec, overrides: Mapping[str, Any]) -> JobSpec:
    """The job as a revision decodes it; `ValueError` where the settings do not go together."""
    values = job.model_dump(mode="json")
    for name, value in overrides.items():
        *groups, last = name.split(".")
        group = values
        for each in groups:
            group = group[each]
        group[last] = value
    return JobSpec.model_validate(values)
