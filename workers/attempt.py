"""One attempt at one shard, from its staged rows to its commit record.

The attempt id is made here, in the process that executes the attempt, so that two executions never
share one, whatever is delivered twice. Rows pass through the worker's stream; the file is written
to a temporary folder, read back, and published by the create-once protocol. Whatever is raised on
the way becomes a failed outcome and a failure record; nothing leaves as an exception.
"""

import tempfile
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from manifests.columns import output_schema
from manifests.errors import ManifestError, UnknownOutcomeError
from manifests.job import JobSpec
from manifests.journal import write_announcement, write_failure
from manifests.keys import data_key, new_attempt_id
from manifests.open_revision import OpenRevision
from manifests.plan import Plan, plan_hash
from manifests.records import ERRORS_OF, Announcement, CommitRecord, Failure
from manifests.staged import ShardReader, StagedRow
from manifests.store.base import Store
from workers.attempt_log import AttemptLog, log_folder
from workers.clock import utc_now
from workers.copied_rows import read_copied_rows
from workers.errors import EngineError, describe
from workers.feeding import POISON_CLASS, AllRows, RowByRow
from workers.file_metadata import file_metadata
from workers.output import FileFacts, check_shard, write_shard
from workers.shard_assembly import ShardAssembly
from workers.stream import Charge, SampleStream

Phase = Literal["reading", "decoding", "publishing"]
POISON_MESSAGE = "workers died or hung each time this row was decoded alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOrder:
    """What a worker is to do."""

    shard: int
    row_by_row: bool = False
    """Decode one row at a time, and announce each in storage before it starts."""
    convicted: tuple[int, ...] = ()
    """Rows, by index in the shard, that become errors without being decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOutcome:
    """What became of an attempt: all that the driver is told, and it reads storage to be sure."""

    shard: int
    attempt: str
    status: Literal["committed", "lost", "failed"]
    error: str | None = None
    infrastructure: bool = False
    """Not the rows' doing."""
    is_worker_usable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A running attempt, for heartbeats."""

    shard: int
    attempt: str
    phase: Phase
    fraction: float = 0.0
    """Of its samples that are finished, 0 to 1."""


@dataclass(slots=True, kw_only=True)
class _Running:
    """An attempt, as its own thread knows it."""

    attempt: Attempt
    assembly: ShardAssembly | None = None

    def seen(self) -> Attempt:
        """As others may see it."""
        assembly = self.assembly
        if assembly is None or not assembly.num_expected:
            return self.attempt
        return replace(self.attempt, fraction=assembly.num_collected / assembly.num_expected)


class AttemptRunner:
    """Executes attempts of one worker; `run` may be called from several threads at once."""

    def __init__(
        self,
        store: Store,
        *,
        plan: Plan,
        job: JobSpec,
        stream: SampleStream,
        worker: str,
        versions: dict[str, str],
        revision: OpenRevision | None = None,
        epoch: str = "",
    ) -> None:
        """`revision` is what the job has open; without it, the first run."""
        self._revision = revision or OpenRevision(store=store, plan=plan)
        self._store = store
        self._staged = ShardReader(store)
        self._plan = plan
        self._job = job
        self._plan_sha256 = plan_hash(plan)
        self._stream = stream
        self._worker = worker
        self._versions = versions
        self._epoch = epoch
        self._log_folder = log_folder(plan.job_id)
        self._schema = output_schema(plan.job.output.trace, work=plan.job.work)
        self._lock = threading.Lock()
        self._running: dict[int, _Running] = {}
        self._announced: dict[int, int] = {}  # the row that is decoded alone, by shard

    def running(self) -> tuple[Attempt, ...]:
        """What is being executed now."""
        with self._lock:
            return tuple(running.seen() for running in self._running.values())

    def run(self, order: ShardOrder) -> ShardOutcome:
        """Execute one attempt to its end."""
        attempt = new_attempt_id()
        log = AttemptLog(self._log_folder, shard=order.shard, attempt=attempt)
        try:
            return self._execute(order, attempt=attempt, log=log)
        except Exception as error:
            log.failed(error)
            with suppress(OSError, ManifestError):  # storage may be the trouble
                log.publish(self._store)
            return self._failed(error, shard=order.shard, attempt=attempt)
        finally:
            log.close()
            with self._lock:
                self._running.pop(order.shard, None)
                self._announced.pop(order.shard, None)

    def _enter(
        self, phase: Phase, *, shard: int, attempt: str, assembly: ShardAssembly | None = None
    ) -> None:
        seen = Attempt(shard=shard, attempt=attempt, phase=phase)
        with self._lock:
            self._running[shard] = _Running(attempt=seen, assembly=assembly)

    def _execute(self, order: ShardOrder, *, attempt: str, log: AttemptLog) -> ShardOutcome:
        shard = order.shard
        self._enter("reading", shard=shard, attempt=attempt)
        rows = self._staged.read(self._plan.shards[shard])
        assembly = ShardAssembly(
            shard=self._plan.shards[shard],
            attempt=attempt,
            rows=[_convict(row) if i in order.convicted else row for i, row in enumerate(rows)],
            num_samples=self._plan.job.sampling.n,
            chosen=self._revision.rows(shard),
            notice=lambda sample: log.finished(sample, row_id=rows[sample.row].id),
        )
        self._enter("decoding", shard=shard, attempt=attempt, assembly=assembly)
        log.say(f"decoding {assembly.num_expected} samples of shard {shard}")
        charge = self._decode(assembly, row_by_row=order.row_by_row, log=log)
        log.say("publishing")
        self._enter("publishing", shard=shard, attempt=attempt, assembly=assembly)
        with tempfile.TemporaryDirectory(prefix="spotbatch-") as folder:
            return self._publish(assembly, path=Path(folder) / "shard.parquet", charge=charge)

    def _decode(self, assembly: ShardAssembly, *, row_by_row: bool, log: AttemptLog) -> Charge:
        if not row_by_row:
            return self._stream.submit(assembly, AllRows()).result()
        announce = partial(self._announce, assembly, log)
        charge = self._stream.submit(assembly, RowByRow(announce)).result()
        announce(len(assembly.rows))  # all got through: what comes now is no row's doing
        return charge

    def _announce(self, assembly: ShardAssembly, log: AttemptLog, row: int) -> None:
        log.say(f"row {row} is next, alone")
        self._announced[assembly.shard.shard] = row
        announcement = Announcement(
            shard=assembly.shard.shard,
            attempt=assembly.attempt,
            row=row,
            epoch=self._epoch,
            worker=self._worker,
            time=utc_now(),
        )
        write_announcement(self._store, announcement)

    def _publish(self, assembly: ShardAssembly, *, path: Path, charge: Charge) -> ShardOutcome:
        copied = read_copied_rows(self._revision, assembly.shard.shard)
        metadata = file_metadata(
            self._plan,
            job=self._job,
            assembly=assembly,
            plan_sha256=self._plan_sha256,
            versions=self._versions,
            revision=self._revision.number,
            copied=None if copied is None else copied.distribution,
        )
        table = None if copied is None else copied.table
        write_shard(path, assembly, schema=self._schema, metadata=metadata, copied=table)
        facts = check_shard(path, assembly, schema=self._schema)
        record = self._record(assembly, facts=facts, charge=charge)
        outcome = self._revision.commit(record, data_path=path).outcome
        return ShardOutcome(shard=record.shard, attempt=record.attempt, status=outcome)

    def _record(self, assembly: ShardAssembly, *, facts: FileFacts, charge: Charge) -> CommitRecord:
        shard = assembly.shard.shard
        return CommitRecord(
            shard=shard,
            revision=self._revision.number,
            attempt=assembly.attempt,
            data_key=data_key(shard, assembly.attempt),
            rows=len(assembly.rows),
            samples=facts.samples,
            ok=facts.ok,
            errors=facts.errors,
            bytes=facts.bytes,
            sha256=facts.sha256,
            row_ids_sha256=facts.row_ids_sha256,
            schema_fingerprint=facts.schema_fingerprint,
            plan_sha256=self._plan_sha256,
            versions=self._versions,
            counters=charge.counters | sample_sums(assembly),
            engine_s=charge.engine_s,
            worker=self._worker,
            committed=utc_now(),
        )

    def _failed(self, error: Exception, *, shard: int, attempt: str) -> ShardOutcome:
        infrastructure = isinstance(error, OSError | UnknownOutcomeError)
        failure = Failure(
            shard=shard,
            revision=self._revision.number,
            attempt=attempt,
            kind="infrastructure" if infrastructure else "rows",
            error_class=type(error).__name__,
            message=describe(error),
            is_death=isinstance(error, EngineError),
            row=self._announced.get(shard),
            worker=self._worker,
            time=utc_now(),
        )
        # Storage may be the trouble; the driver is told in any case.
        with suppress(OSError, ManifestError):
            write_failure(self._store, failure)
        return ShardOutcome(
            shard=shard,
            attempt=attempt,
            status="failed",
            error=describe(error),
            infrastructure=infrastructure,
            is_worker_usable=not isinstance(error, EngineError),
        )


def _convict(row: StagedRow) -> StagedRow:
    """The row as one that cannot be decoded."""
    return replace(
        row,
        prompt=None,
        messages=None,
        error_class=POISON_CLASS,
        error_message=POISON_MESSAGE,
    )


def sample_sums(assembly: ShardAssembly) -> dict[str, int]:
    """Sums over a shard's samples, kept in its record so that progress needs no data file."""
    samples = assembly.in_order()
    failed = Counter(sample.error_class for sample in samples if sample.error_class is not None)
    return {
        "tokens": sum(sample.num_tokens for sample in samples),
        "nfe": sum(sample.nfe for sample in samples),
        "transitions": sum(sample.transitions for sample in samples),
        "drafted": sum(sample.drafted for sample in samples),
        "accepted": sum(sample.accepted for sample in samples),
        "tied": sum(sample.tied for sample in samples),
    } | {f"{ERRORS_OF}{name}": count for name, count in sorted(failed.items())}
