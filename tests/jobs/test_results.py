"""Committed rows for Python."""

from pathlib import Path

import pytest

from jobs.errors import JobError, NoJobError
from jobs.results import iterate_results, load_results
from manifests.columns import output_schema
from manifests.errors import DamagedError
from tests.jobs.support import commit, finished_job, planned_job, prompts


def test_rows_come_in_input_order_under_the_outputs_schema(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(5), settings=["sampling: {n: 2}"])
    table = load_results(job.store.uri)
    assert table.schema.equals(output_schema("commits"))
    assert table["id"].to_pylist() == [f"r{i // 2}" for i in range(10)]


def test_columns_are_chosen_and_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(3))
    assert load_results(job.store.uri, columns=["text", "id"]).column_names == ["text", "id"]
    with pytest.raises(JobError, match="`answer` is no column of the output"):
        load_results(job.store.uri, columns=["answer"])


def test_a_job_that_is_not_complete_is_read_in_part_only_when_asked(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(6))
    uri = planned.store.uri
    assert load_results(uri, partial=True).num_rows == 0
    commit(planned, shards=[2])
    with pytest.raises(JobError, match=r"not complete \(1 of 3 shards\); give partial=True"):
        load_results(uri)
    assert load_results(uri, partial=True, columns=["id"])["id"].to_pylist() == ["r4", "r5"]


def test_shards_come_one_at_a_time(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(5))
    assert [table.num_rows for table in iterate_results(job.store.uri)] == [0, 2, 2, 1]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(2))
    (file,) = (tmp_path / "out" / "data").iterdir()
    file.write_bytes(b"other")
    with pytest.raises(DamagedError, match=r"data/00000000-"):
        load_results(job.store.uri)


def test_there_is_nothing_where_no_job_is(tmp_path: Path) -> None:
    with pytest.raises(NoJobError):
        load_results(str(tmp_path))
