"""Rows, shards and assemblies for tests of the workers."""

from dataclasses import replace

from manifests.staged import StagedRow
from tests.manifests.builders import StoredJob
from tests.workers.fakes import FakeRuntime
from workers.shard_assembly import ShardAssembly
from workers.work import GenerateWork, Work

ATTEMPT = "00000000000000aa"


def drain_work(work: Work, job: StoredJob, *, shard: int, rows: list[StagedRow]) -> ShardAssembly:
    """All samples of a shard, as the work gives them."""
    assembly = empty_assembly(job, shard=shard, rows=rows)
    samples = work.admit(job.plan.shards[shard], rows)
    while work.has_work():
        samples += work.step()
    for sample in samples:
        assembly.add(sample)
    return assembly


def empty_assembly(
    job: StoredJob, *, shard: int = 0, rows: list[StagedRow] | None = None
) -> ShardAssembly:
    """An attempt that has nothing yet."""
    return ShardAssembly(
        shard=job.plan.shards[shard],
        attempt=ATTEMPT,
        rows=job.rows[shard] if rows is None else rows,
        num_samples=job.plan.job.sampling.n,
    )


def full_assembly(job: StoredJob, *, shard: int = 0, traced: bool = False) -> ShardAssembly:
    """An attempt with all samples of the fake runtime."""
    work = GenerateWork(job.plan, runtime=FakeRuntime(traced=traced))
    return drain_work(work, job, shard=shard, rows=job.rows[shard])


def with_prompt(job: StoredJob, prompt: str, *, row: int) -> list[StagedRow]:
    """The rows of shard 0, one of them with another prompt."""
    rows = list(job.rows[0])
    rows[row] = replace(rows[row], prompt=prompt)
    return rows
