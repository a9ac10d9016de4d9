"""What a report shows is what storage holds."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from jobs.reading import OpenJob, read_committed
from jobs.report.figures import BlockFigures, bars_of, block_figures, report_figures
from jobs.report.sections import NUM_SLICES, throughput, time_unit
from manifests.documents import encode
from manifests.journal import write_failure
from manifests.keys import numerics_key
from manifests.records import Failure
from tests.jobs.support import commit, finished_job, planned_job, prompts
from workers.environment import NumericsClass


@pytest.fixture
def job(tmp_path: Path) -> OpenJob:
    return finished_job(tmp_path, rows=[*prompts(3), {"id": "bad", "prompt": None}])


def fail(job: OpenJob, *, at: datetime, worker: str = "w9@h") -> None:
    failure = Failure(
        shard=0,
        attempt="0" * 16,
        kind="rows",
        error_class="WorkerLost",
        message="<died>",
        worker=worker,
        time=at.isoformat(),
    )
    write_failure(job.store, failure)


def test_samples_errors_and_slowest_rows_are_those_of_the_files(job: OpenJob) -> None:
    figures = report_figures(job)
    assert figures.samples.nfe == [3, 3, 3]
    assert figures.samples.tokens_per_forward == [5 / 3] * 3
    assert [row["id"] for row in figures.samples.errors] == ["bad"]
    assert {row["id"] for row in figures.samples.slowest} == {"r0", "r1", "r2"}
    assert figures.stats.samples == 4


def test_there_is_a_bar_for_every_committed_shard(job: OpenJob) -> None:
    figures = report_figures(job)
    records = read_committed(job).records
    assert {(bar.shard, bar.worker, bar.tokens) for bar in figures.bars} == {
        (shard, record.worker, record.counters["tokens"]) for shard, record in records.items()
    }


def test_bars_of_one_worker_do_not_overlap(job: OpenJob) -> None:
    second = datetime.fromisoformat(read_committed(job).records[1].committed)
    records = {
        shard: record.model_copy(
            update={
                "engine_s": 10.0,
                "committed": (second + timedelta(seconds=9.0 * shard)).isoformat(),
            }
        )
        for shard, record in read_committed(job).records.items()
    }
    bars = bars_of(records.values(), began=second - timedelta(seconds=10))
    assert [(bar.start_s, bar.end_s) for bar in bars] == [(0.0, 9.0), (9.0, 19.0)]


def test_time_begins_with_the_first_work_or_the_first_failure(job: OpenJob) -> None:
    assert min(bar.start_s for bar in report_figures(job).bars) == 0.0
    first = datetime.fromisoformat(read_committed(job).records[0].committed)
    fail(job, at=first - timedelta(seconds=100))
    figures = report_figures(job)
    assert figures.seconds(figures.failures[0].time) == 0.0
    assert min(bar.start_s for bar in figures.bars) == pytest.approx(100.0, abs=10.0)


def test_throughput_adds_up_to_the_tokens(job: OpenJob) -> None:
    fail(job, at=datetime.fromisoformat(read_committed(job).records[0].committed) - timedelta(60))
    figures = report_figures(job)
    slice_s = figures.end_s / NUM_SLICES
    made = sum(rate * slice_s for rate in throughput(figures))
    assert made == pytest.approx(figures.stats.tokens)


def test_blocks_add_up_over_records(job: OpenJob) -> None:
    counters = {"block:0:rounds": 2, "block:0:accepted": 5, "block:11:rounds": 1, "tokens": 9}
    records = [
        record.model_copy(update={"counters": counters})
        for record in read_committed(job).records.values()
    ]
    assert block_figures(records) == (
        BlockFigures(block=0, rounds=4, accepted=10),
        BlockFigures(block=11, rounds=2, accepted=0),
    )


def test_a_job_without_output_has_a_report(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    job = OpenJob(store=planned.store, plan=planned.plan)
    figures = report_figures(job)
    assert (figures.began, figures.bars, figures.stats.samples) == (None, (), 0)
    commit(planned, shards=[1])
    assert len(report_figures(job).bars) == 1


def test_the_numerics_class_is_what_the_first_worker_stored(job: OpenJob) -> None:
    assert report_figures(job).numerics == {}
    stored = NumericsClass(
        device="cpu: x",
        instruction_set="AVX2",
        numerics="invariant",
        dtype="float32",
        torch="2",
        blas="mkl",
        threads=1,
    )
    job.store.put_if_absent(numerics_key(), encode(stored))
    assert report_figures(job).numerics["device"] == "cpu: x"


@pytest.mark.parametrize(
    ("end_s", "unit"), [(59.0, "seconds"), (7200.0, "minutes"), (90000.0, "hours")]
)
def test_a_long_job_is_not_told_in_seconds(end_s: float, unit: str) -> None:
    name, unit_s = time_unit(end_s)
    assert name == unit
    assert end_s / unit_s <= 600.0
