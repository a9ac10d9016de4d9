"""The parts of the page that put times together: throughput and the workers' time lines."""

from jobs.report import charts
from jobs.report.figures import Bar, ReportFigures

NUM_SLICES = 60


def throughput(figures: ReportFigures) -> list[tuple[float, float]]:
    """Tokens per second in equal slices of time; a shard's tokens are spread over its time."""
    end_s = max((bar.end_s for bar in figures.bars), default=0.0)
    if end_s <= 0.0:
        return []
    slice_s = end_s / NUM_SLICES
    tokens = [0.0] * NUM_SLICES
    for bar in figures.bars:
        for index in range(NUM_SLICES):
            share = _share(bar, index * slice_s, (index + 1) * slice_s)
            tokens[index] += bar.tokens * share
    return [((index + 0.5) * slice_s, made / slice_s) for index, made in enumerate(tokens)]


def _share(bar: Bar, start_s: float, end_s: float) -> float:
    """The share of a shard's time in a slice; a shard without a duration lies where it ends."""
    if bar.end_s <= bar.start_s:
        return float(start_s < bar.end_s <= end_s)
    both_s = min(bar.end_s, end_s) - max(bar.start_s, start_s)
    return max(0.0, both_s) / (bar.end_s - bar.start_s)


def worker_lanes(figures: ReportFigures) -> str:
    """Who worked when: a lane per worker, a bar per committed shard, a mark per failed attempt."""
    rows: dict[str, list[charts.Mark]] = {}
    for bar in figures.bars:
        title = (
            f"{bar.worker}: shard {bar.shard}, {bar.end_s - bar.start_s:.1f} s, {bar.tokens} tokens"
        )
        rows.setdefault(_lane(bar.worker), []).append((bar.start_s, bar.end_s, title, "mark"))
    for failure in figures.failures:
        at_s = figures.seconds(failure.time)
        what = f"{failure.error_class}: {failure.message}"
        title = f"{failure.worker}: shard {failure.shard} failed: {what}"
        rows.setdefault(_lane(failure.worker), []).append((at_s, at_s, title, "failed"))
    end_s = max(stop for marks in rows.values() for _, stop, _, _ in marks)
    return charts.lanes(dict(sorted(rows.items())), end=end_s, x_name="seconds")


def _lane(worker: str) -> str:
    """A worker's name without its host, which the marks have."""
    return worker.partition("@")[0]
