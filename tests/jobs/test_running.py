"""How a run is judged by its error rows."""

import pytest

from jobs.running import failed_too_often
from jobs.stats import JobStats, job_stats
from tests.jobs.support import finished_job, prompts


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
