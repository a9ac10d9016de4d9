"""Progress: lines at intervals, a display on a terminal, and nothing at all."""

import io
from collections.abc import Iterator

from rich.console import Console

from jobs.progress import (
    LINE_INTERVAL_S,
    LiveProgress,
    NoProgress,
    PlainProgress,
    describe,
    figures_of,
    open_progress,
)
from manifests.records import Presence


def presence(*, done: int = 1, finished: bool = False, ok: int = 4) -> Presence:
    return Presence(
        epoch="e",
        host="h",
        pid=1,
        updated="2025-01-01T00:00:00+00:00",
        shards_done=done,
        shards_total=8,
        rows_done=5,
        samples_ok=ok,
        samples_error=1,
        tokens=100,
        nfe=50,
        rate_tokens_s=12.34,
        workers=2,
        finished=finished,
    )


def clock(times: list[float]) -> Iterator[float]:
    yield from times


def test_a_line_says_how_far_how_fast_and_at_what_cost() -> None:
    assert describe(presence()) == (
        "1 of 8 shards, 5 rows, 1 errors, 100 tokens, 12.5 forwards per sample, "
        "12.3 tokens/s, 2 workers"
    )


def test_a_line_has_acceptance_errors_by_class_and_the_time_left() -> None:
    more = {"drafted": 40, "accepted": 10, "error_classes": {"NullPrompt": 1}, "eta_s": 3700.0}
    assert describe(presence().model_copy(update=more)) == (
        "1 of 8 shards, 5 rows, 1 errors (1 NullPrompt), 100 tokens, 12.5 forwards per sample, "
        "25% of drafts accepted, 12.3 tokens/s, 2 workers, about 1 h 1 min left"
    )


def test_a_finished_run_has_no_time_left() -> None:
    last = presence(finished=True).model_copy(update={"eta_s": 0.0})
    assert "left" not in describe(last)


def test_there_is_no_cost_before_the_first_sample() -> None:
    assert "forwards" not in describe(presence(ok=0))


def test_plain_lines_come_once_an_interval() -> None:
    stream = io.StringIO()
    times = clock([0.0, 0.0, 1.0, LINE_INTERVAL_S, LINE_INTERVAL_S + 1])
    progress = PlainProgress(stream, clock=lambda: next(times))
    for done in (1, 2, 3, 4):
        progress.update(presence(done=done))
    assert [line.split()[0] for line in stream.getvalue().splitlines()] == ["1", "3"]


def test_the_end_is_always_told() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream, clock=lambda: 0.0)
    progress.update(presence(done=1))
    progress.update(presence(done=8, finished=True))
    assert stream.getvalue().splitlines()[-1].startswith("8 of 8 shards")


def test_messages_are_printed_at_once_and_as_they_are() -> None:
    stream = io.StringIO()
    PlainProgress(stream, clock=lambda: 0.0).message("[red]worker w0 died")
    assert stream.getvalue() == "[red]worker w0 died\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_stream_that_is_no_terminal_gets_plain_lines() -> None:
    with open_progress(io.StringIO()) as progress:
        assert isinstance(progress, PlainProgress)


def test_a_terminal_gets_a_live_display_with_messages_above_it() -> None:
    stream = Terminal()
    with open_progress(stream) as progress:
        assert isinstance(progress, LiveProgress)
        progress.update(presence(done=3))
        progress.message("[red]worker w0 died")
    shown = stream.getvalue()
    assert "[red]worker w0 died" in shown
    assert "3 of 8 shards" in shown
    assert "12.5 per sample" in shown


def drawn(presence: Presence, *, width: int) -> list[str]:
    """The lines of the display, without colours."""
    stream = io.StringIO()
    console = Console(file=stream, width=width)
    with LiveProgress(console) as progress:
        progress.update(presence)
    return [line.rstrip() for line in stream.getvalue().splitlines() if line.strip()]


def test_a_narrow_terminal_has_a_shorter_bar_and_no_broken_line() -> None:
    long = {"shards_total": 10_000, "shards_done": 9_999, "eta_s": 360_000.0}
    told = presence().model_copy(update=long)
    names = [name for name, _ in figures_of(told)]
    for width in (60, 100):
        first, *figures = drawn(told, width=width)
        assert first.endswith("99%  9999 of 10000 shards  4 d 4 h left")
        assert [line.split()[0] for line in figures] == names


def test_workers_that_load_their_models_are_not_missing() -> None:
    starting = presence(done=0).model_copy(update={"workers": 0})
    assert dict(figures_of(starting))["workers"] == "none ready yet"
    ended = starting.model_copy(update={"finished": True})
    assert dict(figures_of(ended))["workers"] == "0"


def test_samples_are_told_where_they_are_not_as_many_as_rows() -> None:
    told = presence(ok=19)
    assert dict(figures_of(told))["rows"] == "5, 20 samples"
    assert dict(figures_of(presence(ok=4)))["rows"] == "5"


def test_a_live_display_of_an_empty_job_can_be_drawn() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    with LiveProgress(console) as progress:
        progress.update(presence(done=0).model_copy(update={"shards_total": 0}))


def test_no_progress_takes_everything() -> None:
    NoProgress().update(presence())
    NoProgress().message("x")
