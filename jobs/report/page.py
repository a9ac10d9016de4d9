"""The report as one HTML page: no script, no network, everything escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from jobs.report import charts
from jobs.report.figures import NUM_ERRORS, ReportFigures
from jobs.report.sections import throughput, worker_lanes
from jobs.report.style import STYLE
from jobs.report_table import report_lines

# Nothing may be loaded, not even by markup that somehow got past the escaping.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def report_page(figures: ReportFigures) -> str:
    """The whole page."""
    plan = figures.job.plan
    sections = [
        _section("Summary", _pairs(report_lines(figures.stats, uri=figures.job.store.uri))),
        _section("What ran", _pairs(_what_ran(figures))),
        *_charts(figures),
        _section("Failed attempts", _failures(figures)),
        _section("Error rows", _errors(figures)),
        _section("Slowest samples", _slowest(figures)),
    ]
    title = f"spotbatch job {plan.job_id}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main><h1>{escape(title)}</h1>"
        f"{_verdict(figures)}{''.join(sections)}</main></body></html>\n"
    )


def _verdict(figures: ReportFigures) -> str:
    """What a reader looks for first: are all samples there, and may they be relied on."""
    stats = figures.stats
    missing = stats.shards_total - stats.shards
    state = (
        "Complete." if stats.complete else f"{missing} of {stats.shards_total} shards are missing."
    )
    if stats.distribution_preserving is None:
        kept = "Nothing is committed yet."
    elif stats.distribution_preserving:
        kept = f"The target's distribution is preserved: {stats.distribution_reason}."
    else:
        kept = f"The target's distribution is not preserved: {stats.distribution_reason}."
    kind = "good" if stats.complete and stats.distribution_preserving else "look"
    return f'<p class="verdict {kind}">{escape(state)} {escape(kept)}</p>'


def _what_ran(figures: ReportFigures) -> list[tuple[str, str]]:
    plan = figures.job.plan
    job = plan.job
    versions = [(name, ", ".join(found)) for name, found in figures.versions.items()]
    numerics = ", ".join(f"{name} {value}" for name, value in figures.numerics.items())
    return [
        ("planned", plan.created),
        ("fingerprint", plan.fingerprint),
        ("target", job.target.path),
        ("drafter", " ".join(filter(None, (job.drafter.method, job.drafter.path))) or "none"),
        ("numerics", numerics or job.decode.numerics),
        ("draft budget", str(job.decode.draft_budget)),
        ("seed", f"{job.seed.value}, scope {job.seed.scope}"),
        ("samples per row", str(job.sampling.n)),
        *versions,
    ]


def _charts(figures: ReportFigures) -> Iterable[str]:
    samples = figures.samples
    if figures.bars:
        rate = charts.line(throughput(figures), x_name="seconds", y_name="tokens/s")
        yield _section("Throughput", rate)
        note = (
            '<p class="note">One bar a committed shard; a red mark is an attempt that failed.</p>'
        )
        yield _section("Workers", worker_lanes(figures) + note)
    if samples.nfe:
        yield _section("Forwards per sample", charts.histogram(samples.nfe, name="forwards"))
        yield _section("Seconds per sample", charts.histogram(samples.wall_s, name="seconds"))
    if figures.blocks:
        per_round = [(str(b.block), b.accepted / b.rounds) for b in figures.blocks if b.rounds]
        chart = charts.columns(per_round, x_name="block of the output", y_name="accepted/round")
        yield _section("Accepted drafts per round, by block", chart)


def _failures(figures: ReportFigures) -> str:
    head = ("time", "shard", "attempt", "worker", "kind", "error", "message")
    rows = [
        (
            f.time[:19].replace("T", " "),
            f.shard,
            f.attempt,
            f.worker,
            f.kind,
            f.error_class,
            f.message,
        )
        for f in sorted(figures.failures, key=lambda failure: failure.time)
    ]
    return _table(head, rows, otherwise="No attempt failed.")


def _errors(figures: ReportFigures) -> str:
    names = ("id", "sample", "shard", "error_class", "error_message")
    rows = [[row[name] for name in names] for row in figures.samples.errors]
    text = _table(names, rows, otherwise="There is no error row.")
    more = figures.stats.errors - len(rows)
    return text + (f"<p>The first {NUM_ERRORS}; there are {more} more.</p>" if more > 0 else "")


def _slowest(figures: ReportFigures) -> str:
    names = ("id", "sample", "shard", "wall_s", "nfe", "tokens")
    rows = [[row[name] for name in names] for row in figures.samples.slowest]
    return _table(names, rows, otherwise="No sample is committed.")


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(v)}</td></tr>" for name, v in pairs)
    return f"<table>{rows}</table>"


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]], *, otherwise: str) -> str:
    if not rows:
        return f"<p>{escape(otherwise)}</p>"
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    lines = ("".join(f"<td>{escape(_cell(value))}</td>" for value in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<div class="wide"><table class="list"><thead><tr>{head}</tr></thead>{body}</table></div>'
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)
