"""A job that grew has the tokens of a job that was planned with all rows."""

from pathlib import Path

import pytest
import torch

from jobs.extending import extend_job
from jobs.planning import plan_job
from jobs.reading import OpenJob, open_job
from jobs.stats import job_stats
from manifests.job import JobSpec
from manifests.open_revision import open_revision
from tests.jobs.support import commit, write_rows
from tests.jobs.twin_jobs import shrink
from tests.twins import write_sdar_twin
from workers.runtime import Runtime, load_runtime
from workers.work import GenerateWork

PLANNED, LATER, ALL = 6, 7, 11  # of shards of four rows


def job_of(folder: Path, *, target: Path, count: int) -> JobSpec:
    """A job over so many prompts, at a temperature at which the noise decides."""
    folder.mkdir(exist_ok=True)
    rows = [{"prompt": f"say {i}"} for i in range(count)]
    return JobSpec.model_validate(
        {
            "input": {"uri": str(write_rows(folder / "prompts.jsonl", rows))},
            "target": {"path": str(target)},
            "output": {"uri": str(folder / "out")},
            "decode": {"max_tokens": 8, "temperature": 1.0, "ignore_eos": True},
            "sampling": {"n": 2},
            "shards": {"rows": 4},
        }
    )


def finish(job: OpenJob, runtime: Runtime) -> None:
    """Decode, commit and seal what the job has open."""
    opened = open_revision(job.store, job.plan)
    assert opened is not None
    work = GenerateWork(opened.plan, runtime=runtime)
    commit(job, shards=[shard.shard for shard in opened.shards], work=work)
    opened.seal()


@pytest.mark.models
def test_a_job_extended_twice_has_the_tokens_of_one_planned_with_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink(monkeypatch)
    torch.set_num_threads(1)
    target = write_sdar_twin(tmp_path / "twin")
    whole = job_of(tmp_path / "whole", target=target, count=ALL)
    grown = job_of(tmp_path / "grown", target=target, count=PLANNED)
    plans = [plan_job(job) for job in (whole, grown)]
    runtime = load_runtime(whole)
    for planned in plans:
        finish(open_job(planned.store.uri), runtime)
    for count in (LATER, ALL):
        spec = job_of(tmp_path / "grown", target=target, count=count)
        extend_job(open_job(grown.output.uri), spec)
        finish(open_job(grown.output.uri), runtime)
    found = [job_stats(open_job(planned.store.uri)) for planned in plans]
    assert [stats.rows for stats in found] == [ALL, ALL]
    assert [stats.shards for stats in found] == [3, 5]
    assert found[0].tokens_digest == found[1].tokens_digest
