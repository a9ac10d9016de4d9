"""What limits a run, and how it is judged by its error rows."""

from pathlib import Path

import pytest

from jobs.errors import JobError
from jobs.running import failed_too_often, run_planned
from jobs.stats import JobStats, job_stats
from manifests.job_running import Cluster
from manifests.journal import write_presence
from tests.jobs.support import commit, finished_job, planned_job, prompts
from tests.jobs.test_progress import presence


@pytest.fixture(scope="module")
def stats(tmp_path_factory: pytest.TempPathFactory) -> JobStats:
    return job_stats(finished_job(tmp_path_factory.mktemp("job"), rows=prompts(1)))


@pytest.mark.parametrize(
    ("ok", "errors", "failed"),
    [
        (0, 0, False),
        (0, 1, True),
        (1, 199 - 1, False),
        (190, 10, False),
        (189, 11, True),
        (0, 500, True),
    ],
)
def test_a_share_of_errors_is_judged_from_two_hundred_samples_on(
    stats: JobStats, ok: int, errors: int, failed: bool
) -> None:
    values = stats.to_json() | {"ok": ok, "errors": errors, "samples": ok + errors}
    assert failed_too_often(JobStats(**values), max_error_fraction=0.05) is failed


def test_gpu_hours_of_earlier_runs_count_as_long_as_there_is_something_to_decode(
    tmp_path: Path,
) -> None:
    planned = planned_job(tmp_path, rows=prompts(3))
    job = planned.plan.job.model_copy(update={"cluster": Cluster(max_gpu_hours=1.0)})
    write_presence(planned.store, presence(finished=True).model_copy(update={"gpu_s": 3600.0}))
    commit(planned, shards=[0])
    with pytest.raises(JobError, match=r"used 1\.00 GPU hours, and cluster\.max_gpu_hours is 1"):
        run_planned(planned, job)
    commit(planned, shards=[1])
    assert run_planned(planned, job).outcome == "sealed"
    assert run_planned(planned, job).outcome == "complete"
