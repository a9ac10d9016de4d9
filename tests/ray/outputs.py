"""What a reader of a finished job sees."""

import pyarrow.parquet as pq

from manifests.plan import sample_key
from manifests.protocol import read_seal
from manifests.verification import verify_structure
from tests.manifests.builders import StoredJob


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
