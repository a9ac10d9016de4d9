"""What the report of a job shows, read from its plan, records, failures and committed files."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.reading import Committed, OpenJob, read_committed
from jobs.stats import JobStats, job_stats
from manifests.committed import committed_rows
from manifests.documents import checked_fields
from manifests.errors import MissingError
from manifests.journal import read_failures
from manifests.keys import numerics_key
from manifests.records import CommitRecord, Failure

NUM_SLOWEST = 10
NUM_ERRORS = 200
_COLUMNS = ("id", "sample", "shard", "nfe", "wall_s", "tokens", "error_class", "error_message")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A shard on a worker's time line; seconds since the job's first work."""

    shard: int
    worker: str
    start_s: float
    end_s: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFigures:
    """One block position of the outputs."""

    block: int
    rounds: int
    accepted: int


@dataclass(slots=True, kw_only=True)
class SampleFigures:
    """What one pass over the committed rows gives."""

    nfe: list[int] = field(default_factory=list)
    tokens_per_forward: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    slowest: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)

    def add(self, table: pa.Table) -> None:
        """Count the rows of one shard."""
        good = table.filter(pc.is_null(table["error_class"]))
        self.nfe += good["nfe"].to_pylist()
        decoded = good.filter(pc.greater(good["nfe"], 0))
        rates = pc.divide(pc.cast(decoded["tokens"], pa.float64()), decoded["nfe"])
        self.tokens_per_forward += rates.to_pylist()
        self.wall_s += good["wall_s"].to_pylist()
        places = good["wall_s"].to_numpy().argsort()[::-1][:NUM_SLOWEST]
        candidates = self.slowest + good.take(pa.array(places)).to_pylist()
        self.slowest = sorted(candidates, key=lambda row: -row["wall_s"])[:NUM_SLOWEST]
        failed = table.filter(pc.is_valid(table["error_class"]))
        self.errors += failed.slice(0, NUM_ERRORS - len(self.errors)).to_pylist()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFigures:
    """Everything on the page."""

    job: OpenJob
    stats: JobStats
    samples: SampleFigures
    bars: tuple[Bar, ...]
    failures: tuple[Failure, ...]
    began: datetime | None
    """The first work that is known of; the time lines' zero."""
    versions: Mapping[str, tuple[str, ...]]
    """What ran, by name: of all attempts that count."""
    blocks: tuple[BlockFigures, ...]
    numerics: Mapping[str, str]
    """What decides the last bits of the job's numbers; empty before the first worker."""

    @property
    def end_s(self) -> float:
        """Seconds from the first work to the last that is known of."""
        ends = [bar.end_s for bar in self.bars]
        return max([*ends, *(self.seconds(failure.time) for failure in self.failures)], default=0.0)

    def seconds(self, time: str) -> float:
        """An ISO 8601 time as seconds since `began`."""
        assert self.began is not None, "nothing has a time without a beginning"
        return (datetime.fromisoformat(time) - self.began).total_seconds()


def report_figures(job: OpenJob, *, scorer: str | None = None) -> ReportFigures:
    """Read everything; files are read one at a time, twice, thrice with a scorer."""
    committed = read_committed(job)
    records = list(committed.records.values())
    failures = tuple(read_failures(job.store))
    began = _began(records, failures=failures)
    return ReportFigures(
        job=job,
        stats=job_stats(job, scorer=scorer),
        samples=_samples(job, committed),
        bars=bars_of(records, began=began),
        failures=failures,
        began=began,
        versions=_versions(records),
        blocks=block_figures(records),
        numerics=_numerics(job),
    )


def _numerics(job: OpenJob) -> dict[str, str]:
    try:
        fields = checked_fields(job.store.get(numerics_key()), key=numerics_key())
    except MissingError:
        return {}
    return {name: str(value) for name, value in fields.items() if name != "version"}


def _samples(job: OpenJob, committed: Committed) -> SampleFigures:
    figures = SampleFigures()
    for table in committed_rows(job.store, job.plan, committed.records, columns=_COLUMNS):
        figures.add(table)
    return figures


def _began(records: Iterable[CommitRecord], *, failures: Iterable[Failure]) -> datetime | None:
    times = [_span(record)[0] for record in records]
    times += [datetime.fromisoformat(failure.time) for failure in failures]
    return min(times, default=None)


def _span(record: CommitRecord) -> tuple[datetime, datetime]:
    end = datetime.fromisoformat(record.committed)
    return datetime.fromtimestamp(end.timestamp() - record.engine_s, tz=end.tzinfo), end


def bars_of(records: Iterable[CommitRecord], *, began: datetime | None) -> tuple[Bar, ...]:
    """The shards on their workers' time lines, by worker and time."""
    bars = []
    for record in records:
        assert began is not None, "a record is a beginning"
        start, end = _span(record)
        bars.append(
            Bar(
                shard=record.shard,
                worker=record.worker,
                start_s=(start - began).total_seconds(),
                end_s=(end - began).total_seconds(),
                tokens=record.counters.get("tokens", 0),
            )
        )
    return tuple(_apart(sorted(bars, key=lambda bar: (bar.worker, bar.start_s))))


def _apart(bars: list[Bar]) -> Iterator[Bar]:
    """A worker's bars cut where the next one begins: a commit comes a little behind its shard."""
    for bar, following in zip_longest(bars, bars[1:]):
        if following is None or following.worker != bar.worker:
            yield bar
        else:
            yield replace(bar, end_s=max(bar.start_s, min(bar.end_s, following.start_s)))


def _versions(records: Iterable[CommitRecord]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for record in records:
        for name, version in record.versions.items():
            found.setdefault(name, set()).add(version)
    return {name: tuple(sorted(versions)) for name, versions in sorted(found.items())}


def block_figures(records: Iterable[CommitRecord]) -> tuple[BlockFigures, ...]:
    """Rounds and accepted drafts by block of the output, from the records' counters."""
    counters: Counter[str] = Counter()
    for record in records:
        counters.update(record.counters)
    names = [name.split(":") for name in counters if name.startswith("block:")]
    return tuple(
        BlockFigures(
            block=block,
            rounds=counters[f"block:{block}:rounds"],
            accepted=counters[f"block:{block}:accepted"],
        )
        for block in sorted({int(parts[1]) for parts in names})
    )
