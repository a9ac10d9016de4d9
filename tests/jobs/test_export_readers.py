"""Other programs read the output, exported or in place, and see what counts and nothing else."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import run

import pytest

from jobs.exporting import export_job
from jobs.reading import OpenJob, require_seal
from manifests.store import LocalStore
from tests.jobs.support import finished_job, plant_loser, prompts

IDS = [f"r{i}" for i in range(5)]
Reader = Callable[[Sequence[str]], list[str]]


def with_pyarrow(paths: Sequence[str]) -> list[str]:
    import pyarrow.dataset as ds

    ids: list[str] = ds.dataset(list(paths)).to_table()["id"].to_pylist()
    return ids


def with_pandas(paths: Sequence[str]) -> list[str]:
    import pandas as pd

    return [row_id for path in paths for row_id in pd.read_parquet(path)["id"]]


def with_polars(paths: Sequence[str]) -> list[str]:
    import polars as pl

    return pl.read_parquet(list(paths))["id"].to_list()


def with_duckdb(paths: Sequence[str]) -> list[str]:
    import duckdb

    rows = duckdb.read_parquet(list(paths)).select("id").fetchall()
    return [row_id for (row_id,) in rows]


READERS: list[Reader] = [with_pyarrow, with_pandas, with_polars, with_duckdb]


@pytest.fixture
def job(tmp_path: Path) -> OpenJob:
    """A complete job, with a file that lost its race."""
    job = finished_job(tmp_path, rows=prompts(5))
    plant_loser(job, shard=1)
    return job


def exported(job: OpenJob, folder: Path) -> list[str]:
    """Paths of an export's files."""
    result = export_job(job, LocalStore(folder), rows_per_file=2)
    return [str(folder / file.key) for file in result.export.files]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_an_export_is_read_by(reader: Reader, job: OpenJob, tmp_path: Path) -> None:
    assert reader(exported(job, tmp_path / "clean")) == IDS


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_the_files_that_count_are_read_in_place_by(reader: Reader, job: OpenJob) -> None:
    paths = [f"{job.store.uri}/{sealed.data_key}" for sealed in require_seal(job).shards]
    assert reader(paths) == IDS


def test_a_folder_of_an_export_is_a_dataset(job: OpenJob, tmp_path: Path) -> None:
    import pyarrow.dataset as ds

    exported(job, tmp_path / "clean")
    assert ds.dataset(tmp_path / "clean").to_table()["id"].to_pylist() == IDS


# `datasets` and Ray Data leave threads and processes behind: each has a process of its own.
WITH_DATASETS = """
import sys
from datasets import load_dataset
files, cache = sys.argv[2:], sys.argv[1]
rows = load_dataset("parquet", data_files=files, split="train", cache_dir=cache)
print(",".join(rows["id"]))
"""
WITH_RAY_DATA = """
import sys
import ray
ray.init(address="local", num_cpus=2, include_dashboard=False, logging_level="ERROR",
         object_store_memory=128 << 20)
ray.data.DataContext.get_current().execution_options.preserve_order = True
rows = ray.data.read_parquet(sys.argv[2:], override_num_blocks=1).take_all()
print(",".join(row["id"] for row in rows))
ray.shutdown()
"""


def read_in_a_process(program: str, cache: Path, paths: Sequence[str]) -> list[str]:
    """What the program prints on its last line."""
    done = run(
        [sys.executable, "-W", "ignore", "-c", program, str(cache), *paths],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()[-1].split(",")


@pytest.mark.cli
def test_an_export_is_read_by_datasets(job: OpenJob, tmp_path: Path) -> None:
    paths = exported(job, tmp_path / "clean")
    assert read_in_a_process(WITH_DATASETS, tmp_path / "cache", paths) == IDS


@pytest.mark.ray
def test_an_export_is_read_by_ray_data(job: OpenJob, tmp_path: Path) -> None:
    paths = exported(job, tmp_path / "clean")
    assert sorted(read_in_a_process(WITH_RAY_DATA, tmp_path / "cache", paths)) == IDS
