"""Exports: what counts and nothing else, in a clean place, once, and readable by everything."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from jobs.errors import JobError
from jobs.exporting import ExportResult, export_job
from jobs.reading import OpenJob
from manifests.documents import encode, read_document
from manifests.errors import DamagedError
from manifests.export import SUCCESS_KEY, Export
from manifests.store import LocalStore, MemoryStore
from tests.jobs.support import finished_job, planned_job, plant_loser, prompts
from tests.manifests.faulty_store import FaultyStore

NUM_ROWS = 7
IDS = [f"r{i}" for i in range(NUM_ROWS)]


@pytest.fixture
def job(tmp_path: Path) -> OpenJob:
    """A complete job of four shards, with a file that lost its race beside those that count."""
    job = finished_job(tmp_path, rows=prompts(NUM_ROWS))
    plant_loser(job)
    return job


def export(job: OpenJob, folder: Path, **options: Any) -> ExportResult:
    return export_job(job, LocalStore(folder), **options)


def rows_of(folder: Path) -> list[str]:
    """Ids of all rows under a folder, in the order of its files."""
    tables = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    return [row_id for table in tables for row_id in table["id"].to_pylist()]


def test_an_export_is_one_file_with_every_row_in_input_order(job: OpenJob, tmp_path: Path) -> None:
    result = export(job, tmp_path / "clean")
    assert (result.num_written, len(result.export.files)) == (1, 1)
    assert rows_of(tmp_path / "clean") == IDS
    names = sorted(path.name for path in (tmp_path / "clean").iterdir())
    assert names == [SUCCESS_KEY, result.export.files[0].key]


def test_files_end_with_the_shard_that_reaches_the_number_of_rows(
    job: OpenJob, tmp_path: Path
) -> None:
    result = export(job, tmp_path / "clean", rows_per_file=3)
    assert [file.rows for file in result.export.files] == [4, 3]
    assert rows_of(tmp_path / "clean") == IDS


def test_the_success_file_says_what_is_there_and_comes_last(job: OpenJob, tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path / "clean"), script=[])
    result = export_job(job, store, rows_per_file=1)
    assert [call.split()[1] for call in store.calls][-1] == SUCCESS_KEY
    stored = read_document(store, Export, SUCCESS_KEY)
    assert stored == result.export
    assert (stored.rows, stored.ok, stored.errors, stored.revision) == (NUM_ROWS, NUM_ROWS, 0, 0)
    assert json.loads(store.get(SUCCESS_KEY))["job_id"] == job.plan.job_id


def test_an_interrupted_export_goes_on_with_the_files_that_are_missing(
    job: OpenJob, tmp_path: Path
) -> None:
    whole = export(job, tmp_path / "whole", rows_per_file=1).export
    store = LocalStore(tmp_path / "clean")
    first = whole.files[0].key
    store.put_file_if_absent(first, tmp_path / "whole" / first)
    result = export_job(job, store, rows_per_file=1)
    assert (result.num_written, result.export) == (3, whole)


def test_an_export_that_is_there_is_found(job: OpenJob, tmp_path: Path) -> None:
    first = export(job, tmp_path / "clean")
    again = export(job, tmp_path / "clean")
    assert (again.num_written, again.export) == (0, first.export)


def test_a_rival_with_the_same_export_harms_nothing(job: OpenJob, tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path / "clean"), script=[])
    whole = export(job, tmp_path / "whole").export
    key = whole.files[0].key
    rival = LocalStore(tmp_path / "clean")
    store.before[f"put {key}"] = lambda: rival.put_file_if_absent(key, tmp_path / "whole" / key)
    store.before[f"put {SUCCESS_KEY}"] = lambda: rival.put_if_absent(SUCCESS_KEY, encode(whole))
    assert export_job(job, store).export == whole


def test_a_place_with_anything_else_in_it_is_refused(job: OpenJob, tmp_path: Path) -> None:
    (tmp_path / "clean").mkdir()
    (tmp_path / "clean" / "mine.parquet").write_bytes(b"x")
    with pytest.raises(JobError, match=r"holds mine.parquet and 0 more .* nothing is overwritten"):
        export(job, tmp_path / "clean")
    assert [path.name for path in (tmp_path / "clean").iterdir()] == ["mine.parquet"]


def test_an_export_of_something_else_is_not_overwritten(job: OpenJob, tmp_path: Path) -> None:
    export(job, tmp_path / "clean")
    with pytest.raises(JobError, match="more objects that are not of this export"):
        export(job, tmp_path / "clean", rows_per_file=1)
    success = tmp_path / "clean" / SUCCESS_KEY
    stored = read_document(LocalStore(tmp_path / "clean"), Export, SUCCESS_KEY)
    success.write_bytes(encode(stored.model_copy(update={"seal_sha256": "0" * 64})))
    with pytest.raises(JobError, match="holds an export of revision 0 of job"):
        export(job, tmp_path / "clean")


@pytest.mark.parametrize("place", ["", "export"])
def test_the_jobs_own_directory_is_no_clean_place(job: OpenJob, place: str) -> None:
    with pytest.raises(JobError, match="lies in the job's own directory"):
        export(job, Path(job.store.uri) / place)


def test_a_job_that_is_not_complete_has_nothing_to_export(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(1))
    with pytest.raises(JobError, match="is not complete, so nothing of it counts yet"):
        export_job(OpenJob(store=planned.store, plan=planned.plan), MemoryStore())


@pytest.mark.parametrize(
    ("damage", "problem"),
    [(b"x", "it cannot be read"), (None, "it has 0 rows, not 7; delete it")],
)
def test_a_damaged_file_of_an_interrupted_export_is_named(
    job: OpenJob, tmp_path: Path, damage: bytes | None, problem: str
) -> None:
    key = export(job, tmp_path / "whole").export.files[0].key
    (tmp_path / "clean").mkdir()
    path = tmp_path / "clean" / key
    if damage is None:
        pq.write_table(pa.table({"id": pa.array([], pa.string())}), path)
    else:
        path.write_bytes(damage)
    with pytest.raises(DamagedError, match=f"{key}: {problem}"):
        export(job, tmp_path / "clean")


def test_a_file_that_changed_since_it_was_sealed_is_never_exported(
    job: OpenJob, tmp_path: Path
) -> None:
    keys = [k for k in job.store.list("data/00000002")]
    (Path(job.store.uri) / keys[0]).write_bytes(b"x")
    with pytest.raises(DamagedError, match=keys[0]):
        export(job, tmp_path / "clean")
    assert not (tmp_path / "clean" / SUCCESS_KEY).exists()
