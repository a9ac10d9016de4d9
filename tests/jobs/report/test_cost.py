"""What the report says about cost."""

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.report.cost import cost_lines
from jobs.stats import JobStats, job_stats
from manifests.job import JobSpec
from tests.jobs.support import finished_job, prompts


@pytest.fixture
def finished(tmp_path: Path) -> tuple[JobStats, JobSpec]:
    job = finished_job(tmp_path, rows=prompts(3))
    costly = replace(
        job_stats(job),
        engine_s=90.0,
        decoding_s=61.0,
        target_s=60.0,
        drafter_s=10.0,
        host_s=10.0,
        tokens=4500,
        prefix_hit_rate=0.25,
    )
    return costly, job.plan.job


def test_seconds_forwards_and_tokens_are_told(finished: tuple[JobStats, JobSpec]) -> None:
    lines = dict(cost_lines(finished[0], job=finished[1]))
    assert lines["time of workers"] == "90.0 s, all workers together"
    assert lines["time of decoding"] == "1 min 1 s, with a worker or more at work"
    assert lines["spent in"] == "target 75%, drafter 12%, host 12%"
    assert lines["tokens"] == "4,500, 50.0 a second of a worker"
    assert lines["prefix pages"] == "25% of those asked for were there"
    assert "GPU time" not in lines


def test_gpus_of_a_worker_are_counted(finished: tuple[JobStats, JobSpec]) -> None:
    stats, job = finished
    with_gpus = job.model_copy(
        update={"cluster": job.cluster.model_copy(update={"gpus_per_worker": 2.0})}
    )
    lines = dict(cost_lines(stats, job=with_gpus))
    assert lines["GPU time"] == "180.0 s, 2 a worker as planned"


def test_a_job_without_output_cost_nothing(finished: tuple[JobStats, JobSpec]) -> None:
    stats, job = finished
    none = replace(stats, engine_s=0.0, tokens=0, target_s=0.0, drafter_s=0.0, host_s=0.0)
    lines = dict(cost_lines(none, job=job))
    assert lines["tokens"] == "0"
    assert "spent in" not in lines
