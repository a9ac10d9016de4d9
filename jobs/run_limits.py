"""Limits of one run: when it has used its time or its GPU hours, it drains.

The driver tells its progress display where it stands several times a second; a display that counts
on the way knows when the limit is reached, and asks for a drain once, as an operator would.
"""

import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from jobs.durations import duration
from jobs.progress import ProgressSink
from manifests.job import JobSpec
from manifests.records import Presence

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What a run may use; None is no limit."""

    time_s: float | None = None
    """From the start of the run."""
    gpu_hours: float | None = None
    gpus_per_worker: float = 1.0
    """What a worker counts as."""


def limits_of(job: JobSpec, *, time_s: float | None) -> RunLimits:
    """The limits of a run of `job`; a worker without a GPU counts as one."""
    cluster = job.cluster
    return RunLimits(
        time_s=time_s,
        gpu_hours=cluster.max_gpu_hours,
        gpus_per_worker=cluster.gpus_per_worker or 1.0,
    )


@dataclass(slots=True, kw_only=True)
class LimitedProgress:
    """Passes everything on to a display, and calls `drain` once when a limit is reached."""

    inner: ProgressSink
    limits: RunLimits
    began: float
    clock: Callable[[], float]
    drain: Callable[[], None]
    _gpu_s: float = 0.0
    _counted_until: float = field(init=False)
    _is_over: bool = False

    def __post_init__(self) -> None:
        self._counted_until = self.clock()

    def update(self, presence: Presence) -> None:
        """Count what the workers have held since the last time, and look at the limits."""
        now = self.clock()
        held_s = (now - self._counted_until) * presence.workers
        self._gpu_s += held_s * self.limits.gpus_per_worker
        self._counted_until = now
        self.inner.update(presence)
        reason = self._reason(now)
        if reason is not None and not self._is_over and not presence.finished:
            self._is_over = True
            self.message(f"{reason}; the run is drained and can be continued")
            self.drain()

    def message(self, text: str) -> None:
        """Pass it on."""
        self.inner.message(text)

    def _reason(self, now: float) -> str | None:
        limits = self.limits
        if limits.time_s is not None and now - self.began >= limits.time_s:
            return f"the run has taken {duration(limits.time_s)} (--stop-after)"
        if limits.gpu_hours is not None and self._gpu_s >= limits.gpu_hours * _HOUR_S:
            return f"the run has used {limits.gpu_hours:g} GPU hours (cluster.max_gpu_hours)"
        return None


def drain_this_process() -> None:
    """What an operator does: the driver takes SIGTERM for the wish to drain."""
    signal.raise_signal(signal.SIGTERM)
