"""What a reader of a finished job sees."""

from threading import Thread

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.reading import OpenJob
from jobs.stats import job_stats
from manifests.plan import sample_key
from manifests.protocol import read_seal, seal_job
from manifests.verification import verify_structure
from tests.manifests.builders import StoredJob
from workers.attempt import AttemptRunner, ShardOrder
from workers.gate import Gate
from workers.stream import SampleStream
from workers.work import open_work


def assert_whole(job: StoredJob) -> None:
    """Sealed, structurally sound, every planned sample once and in order."""
    assert read_seal(job.store) is not None
    assert verify_structure(job.store) == []
    assert committed_samples(job) == planned_samples(job)


def committed_samples(job: StoredJob) -> list[tuple[str, int, int]]:
    """(row id, sample, key) in the order of shards and rows, by the seal."""
    seal = read_seal(job.store)
    assert seal is not None
    found = []
    for shard in seal.shards:
        table = pq.read_table(job.path(shard.data_key), columns=["id", "sample", "seed"])
        found += [(row["id"], row["sample"], row["seed"]) for row in table.to_pylist()]
    return found


def planned_samples(job: StoredJob) -> list[tuple[str, int, int]]:
    """(row id, sample, key) of the whole job in input order."""
    return [
        (row.id, sample, sample_key(job.plan, shard, index, row, sample))
        for shard in job.plan.shards
        for index, row in enumerate(job.rows[shard.shard])
        for sample in range(job.plan.job.sampling.n)
    ]


def assert_same_outputs(job: StoredJob, other: StoredJob) -> None:
    """Token columns byte-equal, ids a multiset of the same, and one digest.

    `other` is decoded here and now, in this process, without any trouble.
    """
    decode_here(other)
    assert token_columns(job) == token_columns(other)
    assert digest_of(job) == digest_of(other)


def decode_here(job: StoredJob) -> None:
    """Commit and seal all shards of a planned job by one attempt each."""
    work = open_work(job.plan, job=job.plan.job)
    stream = SampleStream(work, gate=Gate(None), clock=lambda: 0.0)
    thread = Thread(target=stream.run)
    thread.start()
    runner = AttemptRunner(
        job.store, plan=job.plan, job=job.plan.job, stream=stream, worker="here", versions={}
    )
    outcomes = [runner.run(ShardOrder(shard=shard.shard)) for shard in job.plan.shards]
    stream.stop()
    thread.join()
    assert {outcome.status for outcome in outcomes} == {"committed"}
    seal_job(job.store, job.plan)


def token_columns(job: StoredJob) -> bytes:
    """What the samples are, without what their attempts were; as one stream of bytes."""
    seal = read_seal(job.store)
    assert seal is not None
    names = ["id", "sample", "seed", "text", "token_ids", "error_class"]
    tables = [pq.read_table(job.path(shard.data_key), columns=names) for shard in seal.shards]
    table = pa.concat_tables(tables).combine_chunks().replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def digest_of(job: StoredJob) -> str:
    """The digest over all tokens, as `spotbatch stats` prints it."""
    return job_stats(OpenJob(store=job.store, plan=job.plan)).tokens_digest
