"""Who may ask the driver to stop: signals to its process, and control files in the job's storage.

Ctrl-C asks for a drain, and asked twice for an end at once. SIGTERM, however often it comes, asks
for a drain: whoever sends it counts on seconds of grace. Handlers only count, and are set after
Ray's own, which they replace while a job runs.
"""

import signal
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """Counts SIGINT and SIGTERM while it is entered; the old handlers come back afterwards."""

    def __init__(self) -> None:
        self.num_interrupts = 0
        self.num_terminations = 0
        self._previous: dict[signal.Signals, Any] = {}

    @property
    def wants_drain(self) -> bool:
        """Whether any came."""
        return self.num_interrupts + self.num_terminations > 0

    @property
    def wants_cancel(self) -> bool:
        """Whether somebody pressed Ctrl-C twice."""
        return self.num_interrupts > 1

    def __enter__(self) -> Self:
        for number in SIGNALS:
            self._previous[number] = signal.signal(number, self._count) or signal.SIG_DFL
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _count(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            self.num_interrupts += 1
        else:
            self.num_terminations += 1
