"""Is what is stored what was promised? A reader that trusts nothing.

Every check is made from the plan, the staged input and the bytes that are there, and shares with
the writer only the models of documents and the schemas. Damage of any kind becomes a finding that
names the key; nothing here raises because of it. A job that is not complete yet is no finding, and
neither is a file that is gone since it was superseded.
"""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from manifests import columns
from manifests.documents import checked_fields, read_document
from manifests.errors import MissingError
from manifests.findings import Finding, attempt, differences, findings_of
from manifests.fingerprints import FileIdentity
from manifests.hashing import sha256_hex
from manifests.keys import (
    COMMITS_PREFIX,
    FAILURES_PREFIX,
    REVISIONS_PREFIX,
    SEALS_PREFIX,
    commit_key,
    commit_prefix,
    failure_key,
    numerics_key,
    plan_key,
    revision_key,
    seal_key,
)
from manifests.plan import Plan, ShardPlan, plan_hash, read_plan
from manifests.records import CommitRecord, Failure, Seal, SealedShard
from manifests.revision import Revision
from manifests.staged import ShardReader, StagedRow
from manifests.store.base import Store
from manifests.verified_data import DataFile, content_problems
from manifests.verified_rows import Copied
from manifests.verified_seals import SealCheck

__all__ = ["Finding", "verify_structure"]

_Rows = frozenset[int] | None


def verify_structure(store: Store) -> list[Finding]:
    """Check everything that a job has stored, but for the tokens themselves."""
    plan, findings = attempt(plan_key(), partial(read_plan, store))
    return findings if plan is None else _Verifier(store, plan=plan).run()


class _Verifier:
    """One pass over a job whose plan can be read."""

    def __init__(self, store: Store, *, plan: Plan) -> None:
        self._store = store
        self._staged = ShardReader(store)
        self._plan = plan  # grows with the revisions that append rows
        self._plans = {0: plan}
        self._plan_sha256 = plan_hash(plan)
        self._schema = columns.output_schema(plan.job.output.trace, work=plan.job.work)
        self._record_keys = frozenset(store.list(COMMITS_PREFIX))
        self._chosen: dict[int, dict[int, _Rows]] = {0: {s.shard: None for s in plan.shards}}
        self._records: dict[int, dict[int, CommitRecord]] = {}
        self._seals: dict[int, Seal] = {}
        self._sealed: dict[int, dict[int, SealedShard]] = {}

    def run(self) -> list[Finding]:
        findings = []
        for revision, key in enumerate(self._store.list(REVISIONS_PREFIX), start=1):
            findings += findings_of(key, self._decision_problems(key, revision=revision))
        for identity in self._plan.staged:
            findings += findings_of(identity.path, self._staged_problems(identity))
        seals = self._store.list(SEALS_PREFIX)
        unreadable = [f for index, key in enumerate(seals) for f in self._read_seal(key, index)]
        for shard in self._plan.shards:
            findings += self._shard_findings(shard)
        findings += self._unknown_records() + unreadable
        for revision, seal in self._seals.items():
            findings += findings_of(seals[revision], self._seal_problems(seal, revision=revision))
        for key in self._store.list(FAILURES_PREFIX):
            findings += findings_of(key, self._failure_problems(key))
        return findings + findings_of(numerics_key(), self._numerics_problems())

    def _staged_problems(self, identity: FileIdentity) -> Iterator[str]:
        with self._store.open_local(identity.path) as path:
            yield from content_problems(path, num_bytes=identity.bytes, sha256=identity.sha256)

    def _decision_problems(self, key: str, *, revision: int) -> Iterator[str]:
        decision = read_document(self._store, Revision, key)
        if not key == revision_key(revision) == revision_key(decision.revision):
            yield f"it is not the decision of revision {revision}"
            return
        parent = sha256_hex(self._store.get(seal_key(decision.parent)))
        problem = decision.misfit(self._plan, plan_sha256=self._plan_sha256, parent_sha256=parent)
        if problem is not None:
            yield problem
        else:
            self._chosen[revision] = {
                shard.shard: None if shard.rows is None else frozenset(shard.rows)
                for shard in decision.shards
            }
            self._plans[revision] = self._plan = decision.plan_with(self._plan)

    def _read_seal(self, key: str, revision: int) -> list[Finding]:
        seal, findings = attempt(key, partial(read_document, self._store, Seal, key))
        if seal is not None:
            self._seals[revision] = seal
            self._sealed[revision] = {sealed.shard: sealed for sealed in seal.shards}
        return findings

    def _shard_findings(self, shard: ShardPlan) -> list[Finding]:
        rows, findings = attempt(shard.part, partial(self._staged.read, shard))
        for revision, chosen in self._chosen.items():
            key = commit_key(shard.shard, revision)
            if shard.shard in chosen and key in self._record_keys:
                findings += self._record_findings(key, shard=shard, revision=revision, rows=rows)
        return findings

    def _record_findings(
        self, key: str, *, shard: ShardPlan, revision: int, rows: list[StagedRow] | None
    ) -> list[Finding]:
        record, damage = attempt(key, partial(read_document, self._store, CommitRecord, key))
        if record is None:
            return damage
        problems = findings_of(key, self._record_problems(record, shard=shard, revision=revision))
        if not problems and not self._is_superseded_and_gone(record):
            file = self._data_file(record, rows=rows)
            problems = findings_of(record.data_key, file.problems())
        self._records.setdefault(revision, {})[shard.shard] = record
        return problems

    def _record_problems(
        self, record: CommitRecord, *, shard: ShardPlan, revision: int
    ) -> Iterator[str]:
        expected = {
            "shard": shard.shard,
            "revision": revision,
            "plan_sha256": self._plan_sha256,
            "rows": shard.rows,
            "samples": shard.rows * self._plan.job.sampling.n,
            "schema_fingerprint": columns.schema_fingerprint(self._schema),
        }
        yield from differences(record, expected)

    def _is_superseded_and_gone(self, record: CommitRecord) -> bool:
        later = [of for number, of in self._sealed.items() if number > record.revision]
        named = [sealed[record.shard].data_key for sealed in later if record.shard in sealed]
        if not named or named[-1] == record.data_key:
            return False
        return record.data_key not in self._store.list(record.data_key)

    def _data_file(self, record: CommitRecord, *, rows: list[StagedRow] | None) -> DataFile:
        return DataFile(
            store=self._store,
            plan=self._plan,
            plan_sha256=self._plan_sha256,
            schema=self._schema,
            record=record,
            rows=rows,
            copied=self._copied(record),
        )

    def _copied(self, record: CommitRecord) -> Copied | None:
        chosen = self._chosen[record.revision][record.shard]
        if chosen is None:
            return None
        earlier = [self._records.get(number, {}) for number in range(record.revision)]
        return Copied(
            chosen=chosen,
            parent=self._parent_table(record),
            attempts=frozenset(
                records[record.shard].attempt for records in earlier if record.shard in records
            ),
        )

    def _parent_table(self, record: CommitRecord) -> pa.Table | None:
        """The file that rows were copied from; its own damage is a finding elsewhere."""
        sealed = self._sealed.get(record.revision - 1, {}).get(record.shard)
        if sealed is None:
            return None
        table, _ = attempt("", partial(self._read_table, sealed.data_key))
        return table

    def _read_table(self, key: str) -> pa.Table:
        with self._store.open_local(key) as path:
            return pq.read_table(path)

    def _unknown_records(self) -> list[Finding]:
        known = {commit_key(s, r) for r, chosen in self._chosen.items() for s in chosen}
        # A decision that cannot be read does not say which records belong to it.
        unread = tuple(
            commit_prefix(revision)
            for revision in range(1, len(self._store.list(REVISIONS_PREFIX)) + 1)
            if revision not in self._chosen
        )
        return [
            Finding(key=key, problem="the plan has no such shard")
            for key in sorted(self._record_keys - known)
            if not key.startswith(unread)
        ]

    def _seal_problems(self, seal: Seal, *, revision: int) -> Iterator[str]:
        chosen = self._chosen.get(revision)
        if chosen is None:
            yield f"there is no decision that revision {revision} could be"
            return
        check = SealCheck(
            plan=self._plans[revision],
            plan_sha256=self._plan_sha256,
            revision=revision,
            shards=frozenset(chosen),
            records=self._records.get(revision, {}),
            is_there=self._record_keys,
            parent=self._seals.get(revision - 1),
            parent_shards=self._sealed.get(revision - 1, {}),
        )
        yield from check.problems(seal)

    def _failure_problems(self, key: str) -> Iterator[str]:
        failure = read_document(self._store, Failure, key)
        if key != failure_key(failure.shard, failure.attempt):
            yield f"it is about shard {failure.shard}, attempt {failure.attempt}"
        if failure.shard >= len(self._plan.shards):
            yield "the plan has no such shard"

    def _numerics_problems(self) -> Iterator[str]:
        try:
            checked_fields(self._store.get(numerics_key()), key=numerics_key())
        except MissingError:  # no worker has started yet
            return
        yield from ()
