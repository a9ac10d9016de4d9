"""Watching ends by itself."""

from pathlib import Path

from jobs.reading import OpenJob
from jobs.watching import watch_status
from manifests.protocol import seal_job
from tests.jobs.support import commit, planned_job, prompts


def test_a_planned_job_is_waited_for_until_it_is_complete(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    slept: list[float] = []

    def run_meanwhile(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            commit(planned, shards=[0, 1])
            seal_job(planned.store, planned.plan)

    job = OpenJob(store=planned.store, plan=planned.plan)
    statuses = list(watch_status(job, interval_s=7.0, sleep=run_meanwhile))
    assert [status.state for status in statuses] == ["planned", "planned", "complete"]
    assert slept == [7.0, 7.0]


def test_a_stopped_job_is_told_once(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    commit(planned, shards=[0])
    job = OpenJob(store=planned.store, plan=planned.plan)
    (status,) = watch_status(job, interval_s=1.0, sleep=lambda seconds: None)
    assert (status.state, status.missing) == ("stopped", "1")
