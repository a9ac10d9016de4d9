"""`spotbatch retry`: deciding what of a job is decoded again, as a revision that `run` carries out.

A retry of a complete job replaces nothing: it chooses rows by what the seal that counts says of
them, and writes the choice down once. The same retry asked for again, while it is open, goes on
with it. In a job that is not complete the only retry is `failed`: the missing shards are tried
again, as `run` would.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import pyarrow as pa

from jobs.job_file import override_job
from jobs.reading import OpenJob
from jobs.shard_ranges import format_ranges
from manifests.committed import committed_table
from manifests.documents import encode
from manifests.errors import RevisionError
from manifests.hashing import sha256_hex
from manifests.job import JobSpec
from manifests.open_revision import OpenRevision, create_revision, open_revision
from manifests.plan import plan_hash
from manifests.protocol import read_seal
from manifests.records import Seal, SealedShard
from manifests.revision import RevisedShard, Revision, overrides_between
from manifests.staged import read_shard


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRequest:
    """What a person wants decoded again; exactly one way to choose."""

    failed: bool = False
    """Shards without a commit record; in a complete job, shards with errors, whole."""
    shards: tuple[int, ...] | None = None
    """These shards, whole."""
    errors: bool = False
    """Rows with an error in one of their samples."""
    finish_reason: Literal["stop", "length"] | None = None
    """Rows with a sample that ended so."""

    @property
    def reason(self) -> str:
        """In words, as the revision keeps it."""
        if self.shards is not None:
            return f"shards {format_ranges(self.shards)}"
        if self.finish_reason is not None:
            return f"finish reason {self.finish_reason}"
        return "failed" if self.failed else "errors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """What there is to run, and under which settings."""

    revision: OpenRevision | None
    """None: there is nothing to decode, and `why` says so."""
    job: JobSpec
    """The planned job under the settings of this retry."""
    why: str


def retry_job(job: OpenJob, request: RetryRequest, *, overrides: Sequence[str] = ()) -> Retry:
    """Decide on a revision, or find that the same one is open.

    Raises `RevisionError` where no revision can be what is asked for, and `JobFileError` for
    settings that cannot be used.
    """
    revised = override_job(job.plan.job, overrides)
    changed = overrides_between(job.plan.job, revised)
    opened = open_revision(job.store, job.plan)
    if opened is not None and opened.decision is None:
        return _go_on(opened, request, job=revised, changed=list(changed))
    if request.finish_reason is not None and not changed:
        raise RevisionError(
            f"decoding is deterministic, so rows that ended by `{request.finish_reason}` would end "
            "so again; change a setting of theirs, as in --set decode.max_tokens=512"
        )
    seal = opened.parent if opened is not None else read_seal(job.store)
    assert seal is not None, "neither the first run nor complete"
    chosen = _choose(job, request, seal=seal)
    if not chosen:
        return Retry(revision=None, job=revised, why=f"no row to decode again ({request.reason})")
    decision = Revision(
        revision=seal.revision + 1,
        parent=seal.revision,
        parent_sha256=sha256_hex(encode(seal)),
        plan_sha256=plan_hash(job.plan),
        reason=request.reason,
        shards=chosen,
        overrides=changed,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    _refuse_another(opened, decision)
    made = create_revision(job.store, job.plan, decision)
    return Retry(revision=made, job=revised, why=_told(decision))


def _go_on(
    opened: OpenRevision, request: RetryRequest, *, job: JobSpec, changed: Sequence[str]
) -> Retry:
    """The first run, which is not finished: its missing shards are all that can be retried."""
    if not request.failed:
        raise RevisionError(
            "the job is not complete, so there is nothing to retry but its missing shards: use "
            "--failed, or finish it with `spotbatch run`"
        )
    if changed:
        raise RevisionError(
            f"the job is not complete, and {changed[0]} can change outputs: finish it with the "
            "settings of its plan, and retry rows of the complete job with others"
        )
    return Retry(revision=opened, job=job, why="the missing shards of the first run")


def _refuse_another(opened: OpenRevision | None, decision: Revision) -> None:
    if opened is None or opened.decision is None or opened.decision.asks_the_same_as(decision):
        return
    raise RevisionError(
        f"revision {opened.number} is open ({_told(opened.decision)}); finish it with "
        "`spotbatch run`, and then retry"
    )


def _told(decision: Revision) -> str:
    settings = [f"{name}={value}" for name, value in sorted(decision.overrides.items())]
    return ", ".join([decision.reason, *settings])


def _choose(job: OpenJob, request: RetryRequest, *, seal: Seal) -> tuple[RevisedShard, ...]:
    if request.shards is not None:
        return _named(request.shards, num_shards=len(job.plan.shards))
    if request.finish_reason is not None:
        ended = request.finish_reason
        return _rows(job, seal.shards, column="finish_reason", wanted=lambda value: value == ended)
    failed = [sealed for sealed in seal.shards if sealed.errors]
    chosen = _rows(job, failed, column="error_class", wanted=lambda value: value is not None)
    if request.failed:
        return tuple(RevisedShard(shard=each.shard) for each in chosen)
    return chosen


def _named(shards: Sequence[int], *, num_shards: int) -> tuple[RevisedShard, ...]:
    for shard in shards:
        if shard >= num_shards:
            raise RevisionError(f"the job has no shard {shard}; its shards are 0-{num_shards - 1}")
    return tuple(RevisedShard(shard=shard) for shard in sorted(set(shards)))


def _rows(
    job: OpenJob,
    shards: Sequence[SealedShard],
    *,
    column: str,
    wanted: Callable[[str | None], bool],
) -> tuple[RevisedShard, ...]:
    """The rows with a sample whose value is wanted, but for those that planning refused."""
    chosen = []
    for sealed in shards:
        table = committed_table(job.store, job.plan, sealed, columns=["row", column])
        found = _rows_with(table, column=column, wanted=wanted)
        rows = sorted(found - _refused(job, sealed.shard)) if found else []
        if rows:
            chosen.append(RevisedShard(shard=sealed.shard, rows=tuple(rows)))
    return tuple(chosen)


def _rows_with(table: pa.Table, *, column: str, wanted: Callable[[str | None], bool]) -> set[int]:
    pairs = zip(table["row"].to_pylist(), table[column].to_pylist(), strict=True)
    return {row for row, value in pairs if wanted(value)}


def _refused(job: OpenJob, shard: int) -> set[int]:
    """Rows whose error is in the input: decoding them again cannot mend it."""
    rows = read_shard(job.store, job.plan, shard)
    return {index for index, row in enumerate(rows) if row.error_class is not None}
