"""Reading the committed output."""

import pyarrow as pa
import pytest

from manifests.committed import committed_rows
from manifests.errors import DamagedError, MissingError
from manifests.keys import data_key
from manifests.protocol import read_records, read_seal
from tests.manifests.builders import StoredJob

MINE = "a" * 16


def test_a_seal_gives_all_shards_in_order(sealed_job: StoredJob) -> None:
    seal = read_seal(sealed_job.store)
    assert seal is not None
    tables = list(committed_rows(sealed_job.store, sealed_job.plan, seal))
    ids = [table["id"].to_pylist()[::2] for table in tables]
    assert ids == [["id-0", "id-1", "id-2"], ["id-3", "id-4"]]


def test_records_give_what_is_committed_so_far(job: StoredJob) -> None:
    job.commit(1)
    records = read_records(job.store, job.plan)
    tables = list(committed_rows(job.store, job.plan, records, columns=["shard", "sample"]))
    assert [table.to_pydict() for table in tables] == [{"sample": [0, 1, 0, 1], "shard": [1] * 4}]


def test_an_attempt_without_a_record_is_invisible(job: StoredJob) -> None:
    path = job.attempt_file(0, attempt=MINE)
    job.store.put_file_if_absent(data_key(0, MINE), path)
    assert list(committed_rows(job.store, job.plan, read_records(job.store, job.plan))) == []


def test_changed_bytes_are_damage(job: StoredJob) -> None:
    key = job.commit(0).record.data_key
    data = bytearray(job.store.get(key))
    data[50] ^= 1
    job.path(key).write_bytes(data)
    with pytest.raises(DamagedError, match=f"{key}: its bytes are not those"):
        list(committed_rows(job.store, job.plan, read_records(job.store, job.plan)))


def test_a_missing_file_is_missing(job: StoredJob) -> None:
    key = job.commit(0).record.data_key
    job.path(key).unlink()
    with pytest.raises(MissingError, match=key):
        list(committed_rows(job.store, job.plan, read_records(job.store, job.plan)))


def test_other_columns_than_planned_are_damage(job: StoredJob) -> None:
    values = [{"id": "id-0"}]
    schema = pa.schema(
        [
            pa.field("id", pa.string()),
            pa.field("error_class", pa.string()),
            pa.field("sample", pa.int32()),
        ]
    )
    path = job.attempt_file(0, attempt=MINE, values=values, schema=schema)
    job.publish(0, path, attempt=MINE)
    with pytest.raises(DamagedError, match="its columns are not those of the plan"):
        list(committed_rows(job.store, job.plan, read_records(job.store, job.plan)))


def test_another_number_of_rows_is_damage(job: StoredJob) -> None:
    path = job.attempt_file(0, attempt=MINE)
    record = job.record(0, attempt=MINE, path=path, samples=7, ok=7)
    job.publish(0, path, attempt=MINE, record=record)
    with pytest.raises(DamagedError, match="it has 6 rows, not 7"):
        list(committed_rows(job.store, job.plan, read_records(job.store, job.plan)))
