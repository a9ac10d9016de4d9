"""`spotbatch extend`: rows that were appended to the input become a revision of the job.

A complete job is extended: its planned rows are read again and have to be what they were; those
behind them are staged as further shards, published, and decided on once. Until that decision is
there nothing has happened, and the same command does it again. `run` then decodes the new shards.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

from jobs.input_changes import changed_input
from jobs.inputs.opening import identify
from jobs.inputs.reading import InputReader
from jobs.reading import OpenJob
from jobs.shard_ranges import format_ranges
from jobs.staging import StagedInput, publish_staged, stage_appended
from manifests.documents import encode
from manifests.errors import InputError, RevisionError
from manifests.extension import Extension, appended_shards
from manifests.fingerprints import FileIdentity, require_same_fields
from manifests.hashing import sha256_hex
from manifests.job import JobSpec
from manifests.open_revision import OpenRevision, create_revision, open_revision
from manifests.plan import plan_hash
from manifests.protocol import read_seal
from manifests.records import Seal
from manifests.revision import RevisedShard, Revision
from manifests.staged import RowsDigest, StagedRow
from manifests.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """What came of it."""

    uri: str
    revision: int | None
    """The revision that has the appended rows; None: there is none, and nothing was written."""
    written: bool
    """Whether it is decided; a dry run only says what would be."""
    open: bool
    """Whether `run` has something to decode."""
    rows: int = 0
    """How many are appended."""
    shards: str = ""
    """The new ones, as in `3-5`."""
    rows_total: int
    """Of the job, with these."""
    shards_total: int
    error_rows: dict[str, int] = field(default_factory=dict)
    """Appended rows that cannot be decoded, by error class."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def line(self) -> str:
        """In one sentence."""
        go_on = f"; `spotbatch run {self.uri}` decodes them" if self.open else ""
        if self.revision is None:
            waiting = f"; shards wait for `spotbatch run {self.uri}`" if self.open else ""
            return f"no row was appended to the {self.rows_total} that are planned{waiting}"
        verb = "become" if self.written else "would become"
        return f"{self.rows} appended rows {verb} shards {self.shards}{go_on}"


def extend_job(job: OpenJob, spec: JobSpec, *, dry_run: bool = False) -> Extended:
    """Decide that the rows behind those of the plan belong to the job.

    `spec` says where the input is, and otherwise the settings of the plan. Raises
    `FingerprintError` if they differ, `InputError` if planned rows changed or an appended one has
    the id of a planned one, and `RevisionError` where the job has something else open.
    """
    plan = job.plan
    require_same_fields(
        plan,
        job=spec,
        input_files=plan.input,
        target_files=plan.target_files,
        drafter_files=plan.drafter_files,
    )
    opened = open_revision(job.store, plan)
    _refuse_open(opened)
    reader = InputReader(spec)
    files = _identities(reader, spec)
    appended = _appended(job, spec, reader=reader, files=files)
    if appended is None:
        return _unchanged(job, is_open=opened is not None)
    if opened is not None:
        raise _still_open(opened)
    seal = read_seal(job.store)
    assert seal is not None, "neither the first run nor complete"
    with tempfile.TemporaryDirectory(prefix="spotbatch-extend-") as folder:
        rows, digest = appended
        staged = stage_appended(
            spec, rows, Path(folder), plan=plan, digest=digest, revision=seal.revision + 1
        )
        if _identities(reader, spec) != files:
            raise InputError(
                "input.uri: a file was changed while it was read; extend when it is complete"
            )
        return _decide(job, staged, seal=seal, files=files, dry_run=dry_run)


def _refuse_open(opened: OpenRevision | None) -> None:
    """An open extension may be the very one that is asked for, so the input decides."""
    if opened is None or (opened.decision is not None and opened.decision.extension is not None):
        return
    if opened.decision is None:
        raise RevisionError(
            "the job is not complete, and only a complete one is extended: finish it with "
            "`spotbatch run`, and then extend it"
        )
    raise _still_open(opened)


def _still_open(opened: OpenRevision) -> RevisionError:
    assert opened.decision is not None, "the first run is told in other words"
    return RevisionError(
        f"revision {opened.number} is open ({opened.decision.reason}); finish it with "
        "`spotbatch run`, and then extend the job"
    )


def _identities(reader: InputReader, spec: JobSpec) -> tuple[FileIdentity, ...]:
    return tuple(identify(file.uri, spec.storage) for file in reader.files)


def _appended(
    job: OpenJob, spec: JobSpec, *, reader: InputReader, files: tuple[FileIdentity, ...]
) -> tuple[Iterator[StagedRow], RowsDigest] | None:
    """The rows behind those of the plan, and the digest up to there; None: there is no such row."""
    plan = job.plan
    rows = reader.rows(num_planned=plan.rows)
    digest = RowsDigest()
    for row in islice(rows, plan.rows):
        digest.add(row)
    if digest.hexdigest() != plan.rows_sha256:
        raise changed_input(job, spec, files=files)
    first = next(rows, None)
    return None if first is None else (chain([first], rows), digest)


def _unchanged(job: OpenJob, *, is_open: bool) -> Extended:
    return Extended(
        uri=job.store.uri,
        revision=None,
        written=False,
        open=is_open,
        rows_total=job.plan.rows,
        shards_total=len(job.plan.shards),
    )


def _decide(
    job: OpenJob,
    staged: StagedInput,
    *,
    seal: Seal,
    files: tuple[FileIdentity, ...],
    dry_run: bool,
) -> Extended:
    decision = _decision(job, _extension(job, staged, files=files), seal=seal)
    opened = None if dry_run else _write(job.store, staged, decision, job=job)
    return _told(job, decision, staged=staged, dry_run=dry_run, is_open=opened is not None)


def _extension(job: OpenJob, staged: StagedInput, *, files: tuple[FileIdentity, ...]) -> Extension:
    return Extension(
        input=files,
        staged=tuple(part.identity for part in staged.parts),
        rows_sha256=staged.digest.hexdigest(),
        rows=job.plan.rows + staged.rows,
        shards=appended_shards(job.plan, staged.shards),
    )


def _decision(job: OpenJob, extension: Extension, *, seal: Seal) -> Revision:
    return Revision(
        revision=seal.revision + 1,
        parent=seal.revision,
        parent_sha256=sha256_hex(encode(seal)),
        plan_sha256=plan_hash(job.plan),
        reason=f"{extension.num_rows} rows appended",
        shards=tuple(RevisedShard(shard=shard.shard) for shard in extension.shards),
        overrides={},
        extension=extension,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _write(
    store: Store, staged: StagedInput, decision: Revision, *, job: OpenJob
) -> OpenRevision | None:
    """The staged files, and then the decision, which is what makes them part of the job."""
    publish_staged(store, staged.parts)
    return create_revision(store, job.plan, decision)


def _told(
    job: OpenJob, decision: Revision, *, staged: StagedInput, dry_run: bool, is_open: bool
) -> Extended:
    return Extended(
        uri=job.store.uri,
        revision=decision.revision,
        written=not dry_run,
        open=is_open,
        rows=staged.rows,
        shards=format_ranges([shard.shard for shard in decision.shards]),
        rows_total=job.plan.rows + staged.rows,
        shards_total=len(job.plan.shards) + len(decision.shards),
        error_rows=dict(sorted(staged.trouble.items())),
    )
