"""The table at the end of a run: what was made, what it cost, where it is, how it looks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from jobs.plain_text import printable
from jobs.reading import OpenJob, read_committed
from jobs.stats import JobStats
from manifests.committed import committed_rows
from manifests.staged import read_shard

NUM_EXAMPLES = 3
_TEXT_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One sample to look at."""

    id: str
    prompt: str
    text: str
    sample: int = 0
    """Its number among the samples of its row."""


def format_lines(lines: Iterable[tuple[str, str]]) -> str:
    """Names and values in two columns."""
    pairs = list(lines)
    width = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in pairs)


def report_lines(stats: JobStats, *, uri: str) -> list[tuple[str, str]]:
    """The figures of a job as names and values."""
    errors = "".join(f", {count} {name}" for name, count in stats.error_classes.items())
    missing = stats.shards_total - stats.shards
    return [
        (
            "state",
            "complete" if stats.complete else f"{missing} of {stats.shards_total} shards missing",
        ),
        ("rows", str(stats.rows)),
        ("samples", f"{stats.samples}, {stats.ok} ok"),
        ("errors", f"{stats.errors}{errors}"),
        ("accuracy", _accuracy(stats)),
        ("tokens", str(stats.tokens)),
        ("forwards per sample", _forwards(stats)),
        ("tokens per forward", _tokens_per_forward(stats)),
        ("tokens per second", _number(stats.tokens_per_second, "{:.1f}")),
        ("cost", _cost(stats)),
        ("rule", _rule(stats)),
        ("distribution", _distribution(stats)),
        ("tokens digest", stats.tokens_digest),
        ("files", f"{uri}/data ({stats.shards} files; `spotbatch files {uri}` lists them)"),
    ]


def _number(value: float | None, form: str = "{:.2f}") -> str:
    return "-" if value is None else form.format(value)


def _accuracy(stats: JobStats) -> str:
    if stats.accuracy is None:
        return "- (not scored)"
    families = ", ".join(f"{name} {share:.3f}" for name, share in stats.accuracy.items())
    return families + (f"; {stats.scorer_errors} without a score" if stats.scorer_errors else "")


def _forwards(stats: JobStats) -> str:
    nfe, free = stats.nfe_per_sample, stats.draft_free_nfe_per_sample
    if not nfe or free is None:
        return "-"
    return f"{nfe:.2f}; draft-free decoding needs {free:.2f} ({free / nfe:.2f} times as many)"


def _cost(stats: JobStats) -> str:
    return f"{stats.engine_s:.1f} s of workers, {stats.forwards} forwards of batches"


def _tokens_per_forward(stats: JobStats) -> str:
    own, batch = _number(stats.tokens_per_forward), _number(stats.tokens_per_batch_forward)
    return f"{own} of a sample, {batch} of a batch"


def _rule(stats: JobStats) -> str:
    name, *constants = stats.rule.items()
    told = [f"{key} {value}" for key, value in constants if value is not None]
    return ", ".join([name[1], *told])


def _distribution(stats: JobStats) -> str:
    if stats.distribution_preserving is None:
        return "-"
    kept = "preserved" if stats.distribution_preserving else "not preserved"
    measured = f" ({stats.diverged} of {stats.replayed} replayed samples differ)"
    return f"{kept}: {stats.distribution_reason}" + (measured if stats.replayed else "")


def examples(job: OpenJob, *, count: int = NUM_EXAMPLES) -> list[Example]:
    """The first samples that are no errors."""
    return list(islice(_examples(job), count))


def _examples(job: OpenJob) -> Iterator[Example]:
    records = read_committed(job).records
    columns = ("id", "sample", "shard", "row", "text", "error_class")
    for shard, table in zip(
        sorted(records), committed_rows(job.store, job.plan, records, columns=columns), strict=True
    ):
        staged = read_shard(job.store, job.plan, shard)
        for row in table.to_pylist():
            if row["error_class"] is None:
                prompt = staged[row["row"]].prompt or staged[row["row"]].messages or ""
                yield Example(id=row["id"], sample=row["sample"], prompt=prompt, text=row["text"])


def format_example(example: Example) -> str:
    """An example to print: no control characters of the model reach the terminal."""
    prompt, text = (printable(t, limit=_TEXT_CHARACTERS) for t in (example.prompt, example.text))
    number = f" sample {example.sample}" if example.sample else ""
    return f"--- {printable(example.id)}{number}\n{prompt}\n>>>\n{text}"
