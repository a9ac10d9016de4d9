"""Is what is stored what was promised? A reader that trusts nothing.

Every check is made from the plan, the staged input and the bytes that are there, and shares with
the writer only the models of documents and the schemas. Damage of any kind becomes a finding that
names the key; nothing here raises because of it. A job that is not complete yet is no finding.

Order for a data file: length, SHA-256, footer and schema, then rows, ids and counts. What follows
on a failed check is left out, since it would only repeat it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from manifests import columns
from manifests.documents import checked_fields, read_document
from manifests.errors import MissingError
from manifests.fingerprints import FileIdentity
from manifests.hashing import sha256_file
from manifests.keys import (
    COMMITS_PREFIX,
    FAILURES_PREFIX,
    SEALS_PREFIX,
    commit_key,
    failure_key,
    numerics_key,
    plan_key,
    seal_key,
)
from manifests.plan import Plan, ShardPlan, plan_hash, read_plan
from manifests.records import CommitRecord, Failure, Seal, SealedShard
from manifests.staged import StagedRow, read_shard
from manifests.store.base import Store
from manifests.verified_rows import row_problems

# All that reading damaged bytes raises; ManifestError and pydantic's errors are ValueErrors.
_DAMAGE = (OSError, ValueError, pa.ArrowException)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong with one stored object."""

    key: str
    problem: str


def verify_structure(store: Store) -> list[Finding]:
    """Check everything that a job has stored, but for the tokens themselves."""
    plan, findings = _attempt(plan_key(), partial(read_plan, store))
    return findings if plan is None else _Verifier(store, plan=plan).run()


def _attempt(key: str, read: Callable[[], T]) -> tuple[T | None, list[Finding]]:
    """The value and no findings, or no value and the finding why."""
    try:
        return read(), []
    except _DAMAGE as error:
        return None, [_damage(key, error)]


def _findings(key: str, problems: Iterable[str]) -> list[Finding]:
    """What a check says about a key; whatever it raises about damaged bytes is a finding too."""
    found = []
    try:
        for problem in problems:
            found.append(Finding(key=key, problem=problem))
    except _DAMAGE as error:
        found.append(_damage(key, error))
    return found


def _damage(key: str, error: Exception) -> Finding:
    return Finding(key=key, problem=str(error).removeprefix(f"{key}: ").removeprefix(f"{key} "))


class _Verifier:
    """One pass over a job whose plan can be read."""

    def __init__(self, store: Store, *, plan: Plan) -> None:
        self._store = store
        self._plan = plan
        self._plan_sha256 = plan_hash(plan)
        self._schema = columns.output_schema(plan.job.output.trace, work=plan.job.work)
        self._record_keys = set(store.list(COMMITS_PREFIX))
        self._records: dict[int, CommitRecord] = {}

    def run(self) -> list[Finding]:
        findings = []
        for identity in self._plan.staged:
            findings += _findings(identity.path, self._staged_problems(identity))
        for shard in self._plan.shards:
            findings += self._shard_findings(shard)
        for key in sorted(self._record_keys - {commit_key(s.shard) for s in self._plan.shards}):
            findings.append(Finding(key=key, problem="the plan has no such shard"))
        for key in self._store.list(SEALS_PREFIX):
            findings += _findings(key, self._seal_problems(key))
        for key in self._store.list(FAILURES_PREFIX):
            findings += _findings(key, self._failure_problems(key))
        return findings + _findings(numerics_key(), self._numerics_problems())

    def _staged_problems(self, identity: FileIdentity) -> Iterator[str]:
        with self._store.open_local(identity.path) as path:
            yield from _content_problems(path, num_bytes=identity.bytes, sha256=identity.sha256)

    def _shard_findings(self, shard: ShardPlan) -> list[Finding]:
        rows, findings = _attempt(
            shard.part, partial(read_shard, self._store, self._plan, shard.shard)
        )
        key = commit_key(shard.shard)
        if key not in self._record_keys:
            return findings
        record, damage = _attempt(key, partial(read_document, self._store, CommitRecord, key))
        if record is None:
            return findings + damage
        self._records[shard.shard] = record
        problems = _findings(key, self._record_problems(record, shard=shard))
        problems = problems or _findings(record.data_key, self._data_problems(record, rows=rows))
        return findings + problems

    def _record_problems(self, record: CommitRecord, *, shard: ShardPlan) -> Iterator[str]:
        expected = {
            "shard": shard.shard,
            "revision": 0,
            "plan_sha256": self._plan_sha256,
            "rows": shard.rows,
            "samples": shard.rows * self._plan.job.sampling.n,
            "schema_fingerprint": columns.schema_fingerprint(self._schema),
        }
        yield from _differences(record, expected)

    def _data_problems(
        self, record: CommitRecord, *, rows: list[StagedRow] | None
    ) -> Iterator[str]:
        with self._store.open_local(record.data_key) as path:
            wrong = list(_content_problems(path, num_bytes=record.bytes, sha256=record.sha256))
            yield from wrong
            if not wrong:
                yield from self._parquet_problems(path, record=record, rows=rows)

    def _parquet_problems(
        self, path: Path, *, record: CommitRecord, rows: list[StagedRow] | None
    ) -> Iterator[str]:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if not file.schema_arrow.equals(self._schema):
                yield "its columns are not those of the plan"
                return
            yield from self._metadata_problems(file.metadata.metadata or {}, record=record)
            table = file.read()
        if rows is not None:
            yield from row_problems(table, record=record, plan=self._plan, rows=rows)

    def _metadata_problems(
        self, metadata: dict[bytes, bytes], *, record: CommitRecord
    ) -> Iterator[str]:
        expected = {
            columns.METADATA_JOB: self._plan.job_id,
            columns.METADATA_SHARD: str(record.shard),
            columns.METADATA_ATTEMPT: record.attempt,
            columns.METADATA_PLAN_SHA256: self._plan_sha256,
        }
        for name, value in expected.items():
            if metadata.get(name.encode()) != value.encode():
                yield f"its file metadata does not say {name} = {value}"

    def _seal_problems(self, key: str) -> Iterator[str]:
        seal = read_document(self._store, Seal, key)
        if key != seal_key(seal.revision):
            yield f"it is the seal of revision {seal.revision}"
        for shard in self._plan.shards:
            if commit_key(shard.shard) not in self._record_keys:
                yield f"the job is sealed, but shard {shard.shard} has no commit record"
        if [sealed.shard for sealed in seal.shards] != [s.shard for s in self._plan.shards]:
            yield "its shards are not those of the plan"
            return
        for sealed in seal.shards:
            if sealed.shard in self._records:
                yield from _sealed_problems(sealed, record=self._records[sealed.shard])
        yield from _differences(seal, self._seal_totals(seal))

    def _seal_totals(self, seal: Seal) -> dict[str, object]:
        totals: dict[str, object] = {
            "plan_sha256": self._plan_sha256,
            "rows": self._plan.rows,
            "samples": sum(shard.samples for shard in seal.shards),
            "ok": sum(shard.ok for shard in seal.shards),
            "errors": sum(shard.errors for shard in seal.shards),
        }
        if len(self._records) == len(self._plan.shards):
            times = [record.committed for record in self._records.values()]
            totals["sealed"] = max(times, default=self._plan.created)
        return totals

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


def _content_problems(path: Path, *, num_bytes: int, sha256: str) -> Iterator[str]:
    size = path.stat().st_size
    if size != num_bytes:
        yield f"it has {size} bytes, not {num_bytes}"
    elif sha256_file(path) != sha256:
        yield "its SHA-256 is not the recorded one"


def _sealed_problems(sealed: SealedShard, *, record: CommitRecord) -> Iterator[str]:
    names = ("data_key", "sha256", "samples", "ok", "errors")
    expected: dict[str, object] = {name: getattr(record, name) for name in names}
    expected["record_key"] = commit_key(record.shard, record.revision)
    for problem in _differences(sealed, expected):
        yield f"shard {sealed.shard}: {problem}"


def _differences(document: object, expected: dict[str, object]) -> Iterator[str]:
    for name, value in expected.items():
        found = getattr(document, name)
        if found != value:
            yield f"{name} is {found!r}, not {value!r}"
