"""The report as one HTML page: no script, no network, everything escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from jobs.report import charts
from jobs.report.cost import cost_lines
from jobs.report.figures import NUM_ERRORS, ReportFigures
from jobs.report.sections import throughput_chart, worker_lanes
from jobs.report.style import STYLE
from jobs.report_table import report_lines
from jobs.spread import Spread

# Nothing may be loaded, not even by markup that somehow got past the escaping.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


# Columns whose words may be of any length, and are broken.
_LONG = frozenset({"id", "message", "error_message", "worker"})


def report_page(figures: ReportFigures) -> str:
    """The whole page."""
    plan = figures.job.plan
    sections = [
        _section("Summary", _pairs(report_lines(figures.stats, uri=figures.job.store.uri))),
        _section("Cost", _pairs(cost_lines(figures.stats, job=plan.job))),
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
    versions = {name: ", ".join(found) for name, found in figures.versions.items()}
    numerics = {name.replace("_", " "): value for name, value in figures.numerics.items()}
    return [
        ("planned", plan.created),
        ("fingerprint", plan.fingerprint),
        ("target", job.target.path),
        ("drafter", " ".join(filter(None, (job.drafter.method, job.drafter.path))) or "none"),
        ("draft budget", str(job.decode.draft_budget)),
        ("seed", f"{job.seed.value}, scope {job.seed.scope}"),
        ("samples per row", str(job.sampling.n)),
        *({"numerics": job.decode.numerics} | numerics | versions).items(),
    ]


def _charts(figures: ReportFigures) -> Iterable[str]:
    samples = figures.samples
    if figures.bars:
        yield _chart("Throughput", throughput_chart(figures), note="Tokens of committed shards.")
        note = "One bar a committed shard; a red mark is an attempt that failed."
        yield _chart("Workers", worker_lanes(figures), note=note)
    if samples.nfe:
        forwards = charts.histogram(samples.nfe, name="forwards")
        yield _chart("Forwards per sample", forwards, note=_spread(figures.stats.nfe_spread))
        rates = charts.histogram(samples.tokens_per_forward, name="tokens per forward")
        note = (
            "By the sample's own forwards; draft-free decoding under the strict rule has at most 1."
        )
        yield _chart("Tokens per forward", rates, note=note)
        seconds = charts.histogram(samples.wall_s, name="seconds")
        yield _chart("Seconds per sample", seconds, note=_spread(figures.stats.wall_s_spread))
    if figures.blocks:
        per_round = [(str(b.block), b.accepted / b.rounds) for b in figures.blocks if b.rounds]
        chart = charts.columns(per_round, x_name="block of the output", y_name="accepted/round")
        note = "How many commits of a round came from drafts, along the output."
        yield _chart("Accepted drafts per round, by block", chart, note=note)


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return ""
    values = (
        ("median", spread.p50),
        ("p90", spread.p90),
        ("p99", spread.p99),
        ("max", spread.max),
    )
    return ", ".join(f"{name} {value:.4g}" for name, value in values)


def _failures(figures: ReportFigures) -> str:
    head = ("time", "shard", "error", "message", "kind", "worker", "attempt")
    rows = [
        (
            f.time[:19].replace("T", " "),
            f.shard,
            f.error_class,
            f.message,
            f.kind,
            f.worker,
            f.attempt,
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
    columns = {"wall_s": "seconds", "nfe": "forwards"}
    names = ("id", "sample", "shard", "wall_s", "nfe", "tokens")
    rows = [[row[name] for name in names] for row in figures.samples.slowest]
    return _table(
        [columns.get(name, name) for name in names], rows, otherwise="No sample is committed."
    )


def _chart(title: str, drawing: str, *, note: str) -> str:
    """A drawing that scrolls in itself where the page is too narrow to read it."""
    told = f'<p class="note">{escape(note)}</p>' if note else ""
    return _section(title, f'<div class="wide chart">{drawing}</div>{told}')


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(v)}</td></tr>" for name, v in pairs)
    return f"<table>{rows}</table>"


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]], *, otherwise: str) -> str:
    if not rows:
        return f"<p>{escape(otherwise)}</p>"
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(_cell, names, row))}</tr>" for row in rows)
    return (
        f'<div class="wide"><table class="list"><thead><tr>{head}</tr></thead>{body}</table></div>'
    )


def _cell(name: str, value: Any) -> str:
    kind = ' class="long"' if name in _LONG else ""
    if value is None:
        return f"<td{kind}></td>"
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return f"<td{kind}>{escape(text)}</td>"
