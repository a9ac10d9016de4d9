"""Limits of a run: reached once, told once, drained once."""

from dataclasses import dataclass, field

import pytest

from jobs.errors import JobError
from jobs.run_limits import LimitedProgress, RunLimits, limits_of
from manifests.records import Presence
from tests.jobs.driver.fakes import FakeSink
from tests.jobs.test_progress import presence
from tests.manifests.builders import job_spec


@dataclass(slots=True)
class Bench:
    """A limited display with a clock that the test moves."""

    limits: RunLimits
    now: float = 100.0
    drains: int = 0
    inner: FakeSink = field(default_factory=FakeSink)
    sink: LimitedProgress = field(init=False)

    def __post_init__(self) -> None:
        self.sink = LimitedProgress(
            inner=self.inner,
            limits=self.limits,
            began=self.now,
            clock=lambda: self.now,
            drain=self._drain,
        )

    def _drain(self) -> None:
        self.drains += 1

    def after(self, seconds: float, *, gpu_s: float = 0.0, finished: bool = False) -> None:
        self.now += seconds
        self.sink.update(said(gpu_s, finished=finished))


def said(gpu_s: float, *, finished: bool = False) -> Presence:
    """What a driver says whose workers have held so much."""
    return presence(finished=finished).model_copy(update={"gpu_s": gpu_s})


def test_time_is_up_once() -> None:
    bench = Bench(RunLimits(time_s=60.0))
    bench.after(59.0)
    assert bench.drains == 0
    bench.after(1.0)
    bench.after(30.0)
    assert bench.drains == 1
    assert bench.inner.messages == [
        "the run has taken 1 min (--stop-after); the run is drained and can be continued"
    ]
    assert len(bench.inner.updates) == 3


def test_gpu_hours_are_counted_over_all_runs_of_the_job() -> None:
    bench = Bench(RunLimits(gpu_hours=1.0, used_gpu_s=1200.0))
    bench.after(1e6, gpu_s=2399.0)
    assert bench.drains == 0
    bench.after(1.0, gpu_s=2400.0)
    assert bench.drains == 1
    assert "the job has used 1 GPU hours (cluster.max_gpu_hours)" in bench.inner.messages[0]


def test_without_limits_nothing_is_drained() -> None:
    bench = Bench(RunLimits())
    bench.after(1e9)
    assert bench.drains == 0


def test_a_finished_run_is_not_drained() -> None:
    bench = Bench(RunLimits(time_s=1.0))
    bench.after(5.0, finished=True)
    assert (bench.drains, bench.inner.messages) == (0, [])


@pytest.mark.parametrize("hours", [None, 2.5])
def test_the_job_says_how_many_gpu_hours(hours: float | None) -> None:
    job = job_spec(cluster={"max_gpu_hours": hours})
    expected = RunLimits(time_s=3.0, gpu_hours=hours, used_gpu_s=300.0)
    assert limits_of(job, time_s=3.0, earlier=[said(100.0), said(200.0)]) == expected


def test_a_job_that_has_used_its_gpu_hours_is_not_begun_again() -> None:
    job = job_spec(cluster={"max_gpu_hours": 1.0})
    with pytest.raises(JobError, match=r"have used 1\.00 GPU hours.*is 1: raise it to go on"):
        limits_of(job, time_s=None, earlier=[said(1800.0), said(1800.0)])
