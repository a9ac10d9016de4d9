"""Limits of a run: reached once, told once, drained once."""

from dataclasses import dataclass, field

import pytest

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

    def after(self, seconds: float, *, workers: int = 2, finished: bool = False) -> None:
        self.now += seconds
        said: Presence = presence(finished=finished).model_copy(update={"workers": workers})
        self.sink.update(said)


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


def test_gpu_hours_are_counted_over_workers_while_they_are_held() -> None:
    bench = Bench(RunLimits(gpu_hours=1.0, gpus_per_worker=2.0))
    bench.after(600.0, workers=0)
    bench.after(600.0, workers=2)  # 2400 GPU seconds
    assert bench.drains == 0
    bench.after(300.0, workers=2)  # 3600
    assert bench.drains == 1
    assert "has used 1 GPU hours (cluster.max_gpu_hours)" in bench.inner.messages[0]


def test_without_limits_nothing_is_drained() -> None:
    bench = Bench(RunLimits())
    bench.after(1e9)
    assert bench.drains == 0


def test_a_finished_run_is_not_drained() -> None:
    bench = Bench(RunLimits(time_s=1.0))
    bench.after(5.0, finished=True)
    assert (bench.drains, bench.inner.messages) == (0, [])


@pytest.mark.parametrize(("hours", "expected"), [(None, None), (2.5, 2.5)])
def test_the_job_says_how_many_gpu_hours(hours: float | None, expected: float | None) -> None:
    job = job_spec(cluster={"max_gpu_hours": hours})
    assert limits_of(job, time_s=3.0) == RunLimits(time_s=3.0, gpu_hours=expected)


@pytest.mark.parametrize(("gpus", "counted"), [(0, 1.0), (0.5, 0.5), (4, 4.0)])
def test_a_worker_counts_as_its_gpus_and_as_one_without(gpus: float, counted: float) -> None:
    job = job_spec(cluster={"gpus_per_worker": gpus})
    assert limits_of(job, time_s=None).gpus_per_worker == counted
