"""Staged input: rows come back as planned, or not at all."""

import io
import json
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from manifests.errors import DamagedError, ManifestError, MissingError, StoreError
from manifests.staged import (
    STAGED_SCHEMA,
    RowsDigest,
    ShardReader,
    StagedRow,
    read_shard,
    staged_table,
)
from manifests.store import LocalStore
from tests.manifests.builders import StoredJob, make_job, write_staged


def part_of(job: StoredJob) -> str:
    """The one staged file of a job."""
    return job.plan.shards[0].part


def test_each_shard_reads_its_own_rows_in_order(job: StoredJob) -> None:
    assert [read_shard(job.store, job.plan, shard) for shard in (0, 1)] == job.rows


def test_all_fields_of_a_row_survive(tmp_path: Path) -> None:
    row = StagedRow(
        row=2**40,
        id="\u00e9\n",
        messages="[]",
        carried="{}",
        max_tokens=3,
        temperature=0.5,
        seed=2**62,
    )
    write_staged(tmp_path / "p", [[row]])
    assert [StagedRow(**values) for values in pq.read_table(tmp_path / "p").to_pylist()] == [row]


def test_footers_hold_statistics_of_ids_and_row_numbers_only(job: StoredJob) -> None:
    row_group = pq.read_metadata(job.path(part_of(job))).row_group(0)
    chunks = [row_group.column(index) for index in range(row_group.num_columns)]
    assert {c.path_in_schema for c in chunks if c.is_stats_set} == {"row", "id"}


def test_an_id_is_required() -> None:
    assert not STAGED_SCHEMA.field("id").nullable
    assert staged_table([]).schema.equals(STAGED_SCHEMA)


def test_a_missing_part_is_missing(job: StoredJob) -> None:
    job.path(part_of(job)).unlink()
    with pytest.raises(MissingError, match=part_of(job)):
        read_shard(job.store, job.plan, 0)


def test_storage_that_fails_is_not_taken_for_damage(job: StoredJob) -> None:
    class Failing(LocalStore):
        def open_reader(self, key: str) -> Any:
            class Reader(io.BytesIO):
                def read(self, size: int | None = -1) -> bytes:
                    raise StoreError("no answer came")

            return closing(Reader(b"x" * 100))

    with pytest.raises(StoreError, match="no answer came"):
        read_shard(Failing(Path(job.store.uri)), job.plan, 0)


def test_a_python_readers_bytes_are_taken_and_let_go_in_the_calling_thread_only(
    job: StoredJob,
) -> None:
    seen: set[int] = set()

    class Piece(bytes):
        def __del__(self) -> None:
            seen.add(threading.get_ident())

    class Watched(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            seen.add(threading.get_ident())
            return Piece(super().read(size))

    class InMemory(LocalStore):
        def open_reader(self, key: str) -> Any:
            return closing(Watched(job.path(key).read_bytes()))

    reader = ShardReader(InMemory(Path(job.store.uri)))
    for _ in range(20):  # a pool takes part now and then only
        reader.read(job.plan.shards[0])
    assert seen == {threading.get_ident()}


@pytest.mark.parametrize("keep_bytes", [0, 100])
def test_a_part_that_was_cut_off_is_damaged(job: StoredJob, keep_bytes: int) -> None:
    path = job.path(part_of(job))
    path.write_bytes(path.read_bytes()[:keep_bytes])
    with pytest.raises(DamagedError, match=f"{part_of(job)}: cannot be read"):
        read_shard(job.store, job.plan, 0)


def test_a_flipped_bit_in_a_page_is_damage(job: StoredJob) -> None:
    path = job.path(part_of(job))
    # Uncompressed, so that nothing but the page's checksum can tell.
    write_staged(path, job.rows, compression="none")
    chunk = pq.read_metadata(path).row_group(0).column(2)
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="cannot be read"):
        read_shard(job.store, job.plan, 0)


def test_rows_of_another_shard_are_refused(job: StoredJob) -> None:
    write_staged(job.path(part_of(job)), [job.rows[0][:2], job.rows[1]])
    with pytest.raises(DamagedError, match="row group 0: its rows are not those of shard 0"):
        read_shard(job.store, job.plan, 0)


def test_a_row_group_that_is_not_there_is_damage(job: StoredJob) -> None:
    write_staged(job.path(part_of(job)), [job.rows[0]])
    with pytest.raises(DamagedError, match="cannot be read"):
        read_shard(job.store, job.plan, 1)


def test_other_columns_are_refused(job: StoredJob) -> None:
    table = staged_table(job.rows[0]).drop_columns(["carried"])
    pq.write_table(table, job.path(part_of(job)))
    with pytest.raises(DamagedError, match="its columns are not those of staged input"):
        read_shard(job.store, job.plan, 0)


def test_a_plan_from_elsewhere_cannot_reach_outside(job: StoredJob) -> None:
    shard = job.plan.shards[0].model_copy(update={"part": "../../secret.parquet"})
    plan = job.plan.model_copy(update={"shards": (shard,)})
    with pytest.raises(ManifestError, match="not a key of this job"):
        read_shard(job.store, plan, 0)


def digest(*rows: StagedRow) -> str:
    made = RowsDigest()
    for row in rows:
        made.add(row)
    return made.hexdigest()


TEXT = StagedRow(row=0, id="a", prompt='say "hé"')


def test_a_prompt_and_the_message_that_it_becomes_have_one_digest() -> None:
    messages = json.dumps([{"role": "user", "content": 'say "hé"'}], ensure_ascii=False)
    assert digest(TEXT) == digest(StagedRow(row=0, id="a", messages=messages))


@pytest.mark.parametrize(
    "change",
    [
        {"id": "b"},
        {"prompt": "x"},
        {"carried": "{}"},
        {"max_tokens": 1},
        {"temperature": 0.5},
        {"seed": 0},
        {"prompt": None, "error_class": "NullPrompt"},
    ],
)
def test_whatever_is_decoded_or_carried_changes_the_digest(change: dict[str, Any]) -> None:
    assert digest(TEXT) != digest(replace(TEXT, **change))


def test_where_trouble_was_found_does_not_change_the_digest() -> None:
    here = replace(TEXT, prompt=None, error_class="E", error_message="line 1")
    assert digest(here) == digest(replace(here, error_message="row 1"))


def test_a_reader_that_has_seen_a_parts_footer_reads_only_a_shards_pages(job: StoredJob) -> None:
    size, read = job.path(part_of(job)).stat().st_size, 0

    class Watched(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            nonlocal read
            data = super().read(size)
            read += len(data)
            return data

    class InMemory(LocalStore):
        def open_reader(self, key: str) -> Any:
            return closing(Watched(job.path(key).read_bytes()))

    reader = ShardReader(InMemory(Path(job.store.uri)))
    assert [reader.read(shard) for shard in job.plan.shards] == job.rows
    group = pq.read_metadata(job.path(part_of(job))).row_group(0)
    footer_too, read = read, 0
    assert reader.read(job.plan.shards[0]) == job.rows[0]
    pages = sum(group.column(i).total_compressed_size for i in range(group.num_columns))
    assert pages <= read < size - pages < footer_too


def test_parts_are_told_apart(tmp_path: Path) -> None:
    job = make_job(tmp_path, counts=(2, 3))
    other = job.plan.shards[1].model_copy(update={"part": "input/other.parquet", "row_group": 0})
    write_staged(job.path(other.part), [job.rows[1]])
    reader = ShardReader(job.store)
    assert reader.read(job.plan.shards[0]) == job.rows[0]
    assert reader.read(other) == job.rows[1]
