"""Estimates are proportions of what was measured."""

from pathlib import Path

import pytest

from jobs.estimates import Rate, estimate, rate_of_records
from jobs.reading import read_committed
from tests.jobs.support import finished_job, prompts

RATE = Rate(samples=10, tokens=500, seconds=5.0, source="as measured")


def test_time_and_tokens_grow_with_samples_and_shrink_with_workers() -> None:
    found = estimate(RATE, num_samples=1000, num_workers=4)
    assert found is not None
    assert (found.tokens, found.tokens_per_second) == (50000, 100.0)
    assert found.time_s == pytest.approx(500.0 / 4)
    assert found.worker_hours == pytest.approx(500.0 / 3600)
    assert dict(found.lines(num_workers=4))["expected time"] == (
        "about 2 min 5 s on 4 workers, 0.14 worker hours (as measured)"
    )


@pytest.mark.parametrize(
    "rate",
    [
        Rate(samples=0, tokens=0, seconds=0.0, source=""),
        Rate(samples=1, tokens=0, seconds=1.0, source=""),
    ],
)
def test_nothing_measured_gives_no_estimate(rate: Rate) -> None:
    assert estimate(rate, num_samples=5, num_workers=1) is None


def test_the_jobs_own_records_are_a_rate(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(3))
    rate = rate_of_records(read_committed(job).records.values())
    assert (rate.samples, rate.tokens) == (3, 15)
    assert rate.source == "as its 2 committed shards took"
