"""Decoding the first rows of a job in this process, before any cluster time is spent.

The rows are planned into a folder that is gone afterwards, with the shards and seeds that the whole
job will have, so a preview shows the very samples that the job will make.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jobs.errors import JobError
from jobs.estimates import Rate
from jobs.planning import plan_job
from jobs.report_table import Example
from jobs.shipped_modules import shipped_modules
from manifests.job import JobSpec
from manifests.staged import StagedRow, read_shard
from workers.errors import WorkerError
from workers.samples import OutputSample
from workers.work import open_work


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """The samples of the first rows and what they took."""

    samples: tuple[OutputSample, ...]
    """In input order."""
    rows: tuple[StagedRow, ...]
    """The row of each sample."""
    seconds: float
    """Decoding alone, without the loading of models."""

    @property
    def num_tokens(self) -> int:
        """Of all samples."""
        return sum(sample.num_tokens for sample in self.samples)

    def rate(self) -> Rate:
        """What a worker like this process does."""
        return Rate(
            samples=len(self.samples),
            tokens=self.num_tokens,
            seconds=self.seconds,
            source=f"as {len(self.samples)} samples took in one process on this machine",
        )

    def examples(self) -> list[Example]:
        """The samples to look at; an error is told in place of a text."""
        return [
            Example(
                id=row.id,
                sample=sample.sample,
                prompt=row.prompt or row.messages or "",
                text=_text(sample),
            )
            for sample, row in zip(self.samples, self.rows, strict=True)
        ]


def _text(sample: OutputSample) -> str:
    if sample.error_class is not None:
        return f"[error row: {sample.error_class}: {sample.error_message}]"
    return sample.text or ""


def rehearse(
    job: JobSpec, *, num_rows: int, clock: Callable[[], float] = time.perf_counter
) -> Rehearsal:
    """Decode the first `num_rows` rows; stores nothing and starts no Ray.

    Raises what planning raises, and `JobError` where target or drafter cannot be loaded.
    """
    limit = min(num_rows, job.input.limit or num_rows)
    with tempfile.TemporaryDirectory(prefix="spotbatch-preview-") as folder:
        small = job.model_copy(
            update={
                "input": job.input.model_copy(update={"limit": limit}),
                "output": job.output.model_copy(update={"uri": str(Path(folder) / "job")}),
            }
        )
        return _decode(small, clock=clock)


def _decode(job: JobSpec, *, clock: Callable[[], float]) -> Rehearsal:
    planned = plan_job(job)
    try:
        with shipped_modules(job.cluster.py_modules):
            work = open_work(planned.plan, job=job)
    except (ValueError, WorkerError) as error:
        raise JobError(f"nothing can be decoded here: {error}") from error
    rows = {
        shard.shard: read_shard(planned.store, planned.plan, shard.shard)
        for shard in planned.plan.shards
    }
    began = clock()
    samples: list[OutputSample] = []
    for shard in planned.plan.shards:
        samples += work.admit(shard, rows[shard.shard])
    while work.has_work():
        samples += work.step()
    seconds = clock() - began
    samples.sort(key=lambda sample: (sample.shard, sample.row, sample.sample))
    return Rehearsal(
        samples=tuple(samples),
        rows=tuple(rows[sample.shard][sample.row] for sample in samples),
        seconds=seconds,
    )
