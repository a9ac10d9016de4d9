"""The parts of the page that put times together: throughput and the workers' time lines."""

from jobs.report import charts
from jobs.report.figures import Bar, ReportFigures

NUM_SLICES = 60


def throughput(figures: ReportFigures) -> list[float]:
    """Tokens per second in equal slices of time; a shard's tokens are spread over its time."""
    if figures.end_s <= 0.0:
        return []
    slice_s = figures.end_s / NUM_SLICES
    tokens = [0.0] * NUM_SLICES
    for bar in figures.bars:
        for index in range(NUM_SLICES):
            share = _share(bar, index * slice_s, (index + 1) * slice_s)
            tokens[index] += bar.tokens * share
    return [made / slice_s for made in tokens]


def _share(bar: Bar, start_s: float, end_s: float) -> float:
    """The share of a shard's time in a slice; a shard without a duration lies where it ends."""
    if bar.end_s <= bar.start_s:
        return float(start_s < bar.end_s <= end_s)
    both_s = min(bar.end_s, end_s) - max(bar.start_s, start_s)
    return max(0.0, both_s) / (bar.end_s - bar.start_s)


def throughput_chart(figures: ReportFigures) -> str:
    """Tokens per second over the job's time."""
    name, unit_s = time_unit(figures.end_s)
    rates = throughput(figures)
    return charts.slices(rates, end=figures.end_s / unit_s, x_name=name, y_name="tokens/s")


def time_unit(end_s: float) -> tuple[str, float]:
    """What a time line of this length is read in: name, and seconds of one."""
    if end_s > 4 * 3600.0:
        return "hours", 3600.0
    return ("minutes", 60.0) if end_s > 600.0 else ("seconds", 1.0)


def worker_lanes(figures: ReportFigures) -> str:
    """Who worked when: a lane per worker, a bar per committed shard, a mark per failed attempt."""
    name, unit_s = time_unit(figures.end_s)
    rows: dict[str, list[charts.Mark]] = {}
    for bar in figures.bars:
        title = (
            f"{bar.worker}: shard {bar.shard}, {bar.end_s - bar.start_s:.1f} s, {bar.tokens} tokens"
        )
        mark = (bar.start_s / unit_s, bar.end_s / unit_s, title, "mark")
        rows.setdefault(_lane(bar.worker), []).append(mark)
    for failure in figures.failures:
        at = figures.seconds(failure.time) / unit_s
        what = f"{failure.error_class}: {failure.message}"
        title = f"{failure.worker}: shard {failure.shard} failed: {what}"
        rows.setdefault(_lane(failure.worker), []).append((at, at, title, "failed"))
    return charts.lanes(dict(sorted(rows.items())), end=figures.end_s / unit_s, x_name=name)


def _lane(worker: str) -> str:
    """A worker's name without its host, which the marks have."""
    return worker.partition("@")[0]
