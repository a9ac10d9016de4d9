"""Showing a running job: a live display on a terminal, plain lines elsewhere; always on stderr.

The driver tells a `ProgressSink` where the job stands by the same `Presence` record that it stores
for `spotbatch status`. A sink never raises because of what it is told, and owns no truth.
"""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jobs.durations import duration
from manifests.records import Presence

LINE_INTERVAL_S = 10.0
BAR_WIDTH = 40  # characters, at most
_GAP = 2


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
    """The one-line form, for logs."""
    return ", ".join(
        [f"{presence.shards_done} of {presence.shards_total} shards", *_parts(presence)]
    )


def _parts(presence: Presence) -> list[str]:
    """What there is to say beside shards, in the order of interest."""
    parts = [
        f"{presence.rows_done} rows",
        f"{presence.samples_error} errors{_by_class(presence)}",
        f"{presence.tokens} tokens",
    ]
    if presence.samples_ok:
        parts.append(f"{presence.nfe / presence.samples_ok:.1f} forwards per sample")
    if presence.drafted:
        parts.append(f"{presence.accepted / presence.drafted:.0%} of drafts accepted")
    parts += [f"{presence.rate_tokens_s:.1f} tokens/s", f"{presence.workers} workers"]
    if presence.eta_s is not None and not presence.finished:
        parts.append(f"about {duration(presence.eta_s)} left")
    return parts


def _by_class(presence: Presence) -> str:
    classes = ", ".join(f"{count} {name}" for name, count in presence.error_classes.items())
    return f" ({classes})" if classes else ""


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
    """A bar and figures that stay in place; a context manager."""

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
        self._live.update(_display(presence, width=self._console.width))

    def message(self, text: str) -> None:
        """Print above the bar."""
        self._console.print(text, markup=False, highlight=False)


def _display(presence: Presence, *, width: int) -> Group:
    """A bar that leaves room for what stands beside it, and the figures under it."""
    total = max(1, presence.shards_total)
    beside = [
        f"{100 * presence.shards_done // total}%",
        f"{presence.shards_done} of {presence.shards_total} shards",
    ]
    if presence.eta_s is not None and not presence.finished:
        beside.append(f"{duration(presence.eta_s)} left")
    room = width - sum(len(text) + _GAP for text in beside)
    bar = Table.grid(padding=(0, _GAP, 0, 0))
    bar.add_row(
        ProgressBar(
            total=total, completed=presence.shards_done, width=max(1, min(BAR_WIDTH, room))
        ),
        *beside,
    )
    figures = Table.grid(padding=(0, _GAP))
    for name, value in figures_of(presence):
        is_trouble = name == "errors" and presence.samples_error > 0
        figures.add_row(Text(name, style="dim"), Text(value, style="red" if is_trouble else ""))
    return Group(bar, figures)


def figures_of(presence: Presence) -> list[tuple[str, str]]:
    """The figures under the bar, as names and values; always the same, so that nothing jumps."""
    per_sample = presence.nfe / presence.samples_ok if presence.samples_ok else None
    acceptance = presence.accepted / presence.drafted if presence.drafted else None
    return [
        ("rows", _rows(presence)),
        ("tokens", f"{presence.tokens:,} at {presence.rate_tokens_s:,.1f} per second"),
        ("forwards", "-" if per_sample is None else f"{per_sample:.1f} per sample"),
        ("drafts", "-" if acceptance is None else f"{acceptance:.0%} accepted"),
        ("errors", f"{presence.samples_error}{_by_class(presence)}"),
        ("workers", _workers(presence)),
    ]


def _rows(presence: Presence) -> str:
    samples = presence.samples_ok + presence.samples_error
    more = f", {samples:,} samples" if samples != presence.rows_done else ""
    return f"{presence.rows_done:,}{more}"


def _workers(presence: Presence) -> str:
    """Nobody ready is the rule in the first seconds, while models are loaded."""
    return str(presence.workers) if presence.workers or presence.finished else "none ready yet"


def open_progress(stream: TextIO | None = None) -> LiveProgress | PlainProgress:
    """The display that suits `stream` (default: stderr)."""
    stream = stream or sys.stderr
    if stream.isatty():
        return LiveProgress(Console(file=stream))
    return PlainProgress(stream)
