"""Showing a running job: a live display on a terminal, plain lines elsewhere; always on stderr.

The driver tells a `ProgressSink` where the job stands by the same `Presence` record that it stores
for `spotbatch status`. A sink never raises because of what it is told, and owns no truth.
"""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from manifests.records import Presence

LINE_INTERVAL_S = 10.0


class ProgressSink(Protocol):
    """Where the driver reports to."""

    def update(self, presence: Presence) -> None:
        """The job stands here now."""

    def message(self, text: str) -> None:
        """Something that a reader of the log wants to know (a lost worker, a failed shard)."""


class NoProgress:
    """Shows nothing."""

    def update(self, presence: Presence) -> None:
        """Ignore it."""

    def message(self, text: str) -> None:
        """Ignore it."""


def describe(presence: Presence) -> str:
    """The one-line form, for logs and for `spotbatch status`."""
    parts = [
        f"{presence.shards_done} of {presence.shards_total} shards",
        f"{presence.rows_done} rows",
        f"{presence.samples_error} errors",
        f"{presence.tokens} tokens",
        f"{presence.rate_tokens_s:.1f} tokens/s",
        f"{presence.workers} workers",
    ]
    if presence.samples_ok:
        parts.insert(4, f"{presence.nfe / presence.samples_ok:.1f} forwards per sample")
    return ", ".join(parts)


class PlainProgress:
    """One line per interval and one when the job is finished; a context manager."""

    def __init__(
        self,
        stream: TextIO,
        *,
        clock: Callable[[], float] = time.monotonic,
        interval_s: float = LINE_INTERVAL_S,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._interval_s = interval_s
        self._due_s = clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def update(self, presence: Presence) -> None:
        """Print a line when the interval has passed or the job is finished."""
        now = self._clock()
        if now < self._due_s and not presence.finished:
            return
        self._due_s = now + self._interval_s
        self.message(describe(presence))

    def message(self, text: str) -> None:
        """Print at once."""
        print(text, file=self._stream, flush=True)


class LiveProgress:
    """A bar and one line of figures that stay in place; a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def update(self, presence: Presence) -> None:
        """Redraw."""
        self._live.update(_display(presence))

    def message(self, text: str) -> None:
        """Print above the bar."""
        self._console.print(text, markup=False, highlight=False)


def _display(presence: Presence) -> Table:
    table = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(1, presence.shards_total), completed=presence.shards_done, width=40)
    table.add_row(bar, describe(presence))
    return table


def open_progress(stream: TextIO | None = None) -> LiveProgress | PlainProgress:
    """The display that suits `stream` (default: stderr)."""
    stream = stream or sys.stderr
    if stream.isatty():
        return LiveProgress(Console(file=stream))
    return PlainProgress(stream)
