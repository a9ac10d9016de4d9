"""The revision that a run has to work on, and the protocol by which it becomes true.

A job is at every moment either complete under its highest seal, or has one open revision: the
first run, or the decision that `create_revision` made. Whoever runs the job works on that one:
`open_revision` says which it is. Decisions are numbered without gaps and each is created once, so
of two people who decide at the same moment one is told what the other decided.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from manifests.documents import decode, encode, read_document
from manifests.errors import DamagedError, ManifestError, MissingError, RevisionError
from manifests.hashing import sha256_hex
from manifests.job import JobSpec
from manifests.keys import REVISIONS_PREFIX, revision_key, seal_key
from manifests.plan import Plan, ShardPlan, plan_hash
from manifests.protocol import (
    CommitOutcome,
    build_seal,
    commit_shard,
    create,
    list_committed,
    put_seal,
    read_record,
    read_records,
    read_seal,
    require_all,
    sealed_shard,
)
from manifests.records import CommitRecord, Seal, SealedShard
from manifests.revision import Revision, with_overrides
from manifests.store.base import Store


@dataclass(frozen=True, kw_only=True)
class OpenRevision:
    """One revision of one job: what it has to commit, what it has, and how it is sealed."""

    store: Store
    plan: Plan
    """With the rows that revisions up to this one appended."""
    decision: Revision | None = None
    """None: the first run."""
    parent: Seal | None = None
    """What counts until this revision is sealed; the first run has none."""

    @property
    def number(self) -> int:
        """0 is the first run."""
        return self.decision.revision if self.decision else 0

    @cached_property
    def shards(self) -> tuple[ShardPlan, ...]:
        """Those that this revision commits, in shard order."""
        if self.decision is None:
            return self.plan.shards
        return tuple(self.plan.shards[shard.shard] for shard in self.decision.shards)

    def job(self, job: JobSpec) -> JobSpec:
        """A run's job specification with the settings that this revision decodes under."""
        return with_overrides(job, self.decision.overrides) if self.decision else job

    @cached_property
    def _rows(self) -> dict[int, tuple[int, ...] | None]:
        revised = self.decision.shards if self.decision else ()
        return {shard.shard: shard.rows for shard in revised}

    def rows(self, shard: int) -> frozenset[int] | None:
        """Which rows of a shard are decoded, by index; None: all. The others are copied."""
        rows = self._rows.get(shard)
        return None if rows is None else frozenset(rows)

    def copied_from(self, shard: int) -> SealedShard:
        """Where the rows are that are not decoded."""
        assert self.parent is not None, "the first run decodes all rows"
        return self.parent.shards[shard]

    def read_record(self, shard: int) -> CommitRecord | None:
        """The record of one shard in this revision, or None; damage is an error."""
        return read_record(self.store, self.plan, shard, revision=self.number)

    def list_committed(self) -> frozenset[int]:
        """The shards of this revision that have a record, by a listing alone."""
        shards = [shard.shard for shard in self.shards]
        return frozenset(list_committed(self.store, revision=self.number, shards=shards))

    def read_records(self) -> dict[int, CommitRecord]:
        """All records of this revision, in shard order."""
        shards = (shard.shard for shard in self.shards)
        return read_records(self.store, self.plan, revision=self.number, shards=shards)

    def commit(self, record: CommitRecord, *, data_path: Path) -> CommitOutcome:
        """Commit a shard; a record that is not of a whole shard of this revision is an error."""
        expected = self.plan.shards[record.shard].rows * self.plan.job.sampling.n
        if record.samples != expected:
            raise ManifestError(
                f"shard {record.shard}: {record.ok} outputs and {record.errors} errors are not its "
                f"{expected} samples; nothing was committed"
            )
        if record.revision != self.number:
            raise ManifestError(
                f"shard {record.shard}: the record is of revision {record.revision}, and revision "
                f"{self.number} is open; nothing was committed"
            )
        return commit_shard(self.store, record=record, data_path=data_path)

    def seal(self) -> Seal:
        """Write the seal, or find an equal one; needs the record of every shard."""
        records = self.read_records()
        require_all(records, shards=(shard.shard for shard in self.shards))
        if self.parent is None:
            return put_seal(self.store, build_seal(self.plan, records=records.values()))
        return put_seal(self.store, revised_seal(self.parent, records=records))


def revised_seal(parent: Seal, *, records: dict[int, CommitRecord]) -> Seal:
    """The parent with the records of the next revision in their places, or behind; no clock."""
    counting = {sealed.shard: sealed for sealed in parent.shards}
    new_rows = sum(record.rows for shard, record in records.items() if shard not in counting)
    counting |= {shard: sealed_shard(record) for shard, record in records.items()}
    shards = tuple(counting[shard] for shard in sorted(counting))
    return Seal(
        revision=parent.revision + 1,
        parent=parent.revision,
        plan_sha256=parent.plan_sha256,
        shards=shards,
        rows=parent.rows + new_rows,
        samples=sum(sealed.samples for sealed in shards),
        ok=sum(sealed.ok for sealed in shards),
        errors=sum(sealed.errors for sealed in shards),
        sealed=max([parent.sealed, *(record.committed for record in records.values())]),
    )


def open_revision(store: Store, plan: Plan) -> OpenRevision | None:
    """What a run has to work on, or None: the job is complete."""
    seal = read_seal(store)
    if seal is None:
        return OpenRevision(store=store, plan=plan)
    try:
        return numbered_revision(store, plan, seal.revision + 1)
    except MissingError:
        return None


def numbered_revision(store: Store, plan: Plan, number: int) -> OpenRevision:
    """A revision by its number, whether it is still open or not; `MissingError` if it is not there.

    For workers: one that starts late finds all its commits refused, and harms nothing.
    """
    if number == 0:
        return OpenRevision(store=store, plan=plan.as_created)
    before = plan_at(store, plan, number - 1)
    decision = read_revision(store, before, number)
    if decision is None:
        raise MissingError(f"{revision_key(number)} is not in {store.uri}")
    parent = read_document(store, Seal, seal_key(decision.parent))
    return OpenRevision(
        store=store, plan=decision.plan_with(before), decision=decision, parent=parent
    )


def plan_at(store: Store, plan: Plan, revision: int) -> Plan:
    """The job's plan with the rows that revisions up to this one appended.

    This is the one place that says which shards a job has; `plan` is that of any revision.
    """
    plan = plan.as_created
    for number in range(1, revision + 1):
        decision = _stored(store, number)
        if decision is None:
            raise MissingError(f"{revision_key(number)} is not in {store.uri}")
        problem = decision.extension.misfit(plan) if decision.extension else None
        if problem is not None:
            raise DamagedError(f"{revision_key(number)}: {problem}")
        plan = decision.plan_with(plan)
    return plan


def latest_plan(store: Store, plan: Plan) -> Plan:
    """The job's plan with all rows that were appended, also where they are still to be decoded."""
    return plan_at(store, plan, len(store.list(REVISIONS_PREFIX)))


def read_revision(store: Store, plan: Plan, revision: int) -> Revision | None:
    """A decision, or None; one that does not fit its parent seal and the plan is damage.

    `plan` is that of the revision before.
    """
    decision = _stored(store, revision)
    if decision is None:
        return None
    problem = decision.misfit(
        plan,
        plan_sha256=plan_hash(plan),
        parent_sha256=sha256_hex(store.get(seal_key(decision.parent))),
    )
    if problem is not None:
        raise DamagedError(f"{revision_key(revision)}: {problem}")
    return decision


def _stored(store: Store, revision: int) -> Revision | None:
    key = revision_key(revision)
    try:
        data = store.get(key)
    except MissingError:
        return None
    decision = decode(Revision, data, key=key)
    if decision.revision != revision:
        raise DamagedError(f"{key}: it is revision {decision.revision}")
    return decision


def create_revision(store: Store, plan: Plan, decision: Revision) -> OpenRevision | None:
    """Make a decision, or find that the same one was made: then None once it is sealed.

    Raises `RevisionError` if another decision came first.
    """
    create(lambda: store.put_if_absent(revision_key(decision.revision), encode(decision)))
    made = read_revision(store, plan_at(store, plan, decision.parent), decision.revision)
    assert made is not None, "it was created, and decisions are never deleted"
    if not made.asks_the_same_as(decision):
        raise RevisionError(
            f"somebody else opened revision {made.revision} meanwhile ({made.reason}); finish it "
            "with `spotbatch run`, and then try again"
        )
    opened = open_revision(store, plan)
    return opened if opened is not None and opened.number == made.revision else None
