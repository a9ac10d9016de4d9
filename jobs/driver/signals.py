"""Signals are for the driver: the first asks for a drain, the second for an end at once.

Handlers only count, and are set after Ray's own, which they replace while a job runs.
"""

import signal
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class SignalCounter:
    """Counts SIGINT and SIGTERM while it is entered; the old handlers come back afterwards."""

    def __init__(self) -> None:
        self.num_received = 0
        self._previous: dict[signal.Signals, Any] = {}

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
        self.num_received += 1
