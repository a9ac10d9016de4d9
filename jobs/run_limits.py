"""Limits of a run: when its time or the GPU hours of the job are used up, it drains.

The driver tells its progress display where it stands several times a second; a display that looks
at the limits on the way asks for a drain once, as an operator would. Every driver leaves in storage
what its workers have held, so that the runs of a job are counted together.
"""

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jobs.durations import duration
from jobs.errors import JobError
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
    """Of all runs of the job together."""
    used_gpu_s: float = 0.0
    """By the runs before."""


def limits_of(job: JobSpec, *, time_s: float | None, earlier: Iterable[Presence]) -> RunLimits:
    """The limits of a run of `job`, after what earlier drivers have said.

    Raises `JobError` where they have left nothing.
    """
    hours = job.cluster.max_gpu_hours
    used_s = sum(presence.gpu_s for presence in earlier)
    if hours is not None and used_s >= hours * _HOUR_S:
        raise JobError(
            f"the runs of this job have used {used_s / _HOUR_S:.2f} GPU hours, and "
            f"cluster.max_gpu_hours is {hours:g}: raise it to go on"
        )
    return RunLimits(time_s=time_s, gpu_hours=hours, used_gpu_s=used_s)


@dataclass(slots=True, kw_only=True)
class LimitedProgress:
    """Passes everything on to a display, and calls `drain` once when a limit is reached."""

    inner: ProgressSink
    limits: RunLimits
    began: float
    clock: Callable[[], float]
    drain: Callable[[], None]
    _is_over: bool = False

    def update(self, presence: Presence) -> None:
        """Look at the limits on the way."""
        self.inner.update(presence)
        reason = self._reason(presence)
        if reason is not None and not self._is_over and not presence.finished:
            self._is_over = True
            self.message(f"{reason}; the run is drained and can be continued")
            self.drain()

    def message(self, text: str) -> None:
        """Pass it on."""
        self.inner.message(text)

    def _reason(self, presence: Presence) -> str | None:
        limits = self.limits
        if limits.time_s is not None and self.clock() - self.began >= limits.time_s:
            return f"the run has taken {duration(limits.time_s)} (--stop-after)"
        used_s = limits.used_gpu_s + presence.gpu_s
        if limits.gpu_hours is not None and used_s >= limits.gpu_hours * _HOUR_S:
            return f"the job has used {limits.gpu_hours:g} GPU hours (cluster.max_gpu_hours)"
        return None


def drain_this_process() -> None:
    """What an operator does: the driver takes SIGTERM for the wish to drain."""
    signal.raise_signal(signal.SIGTERM)
