"""What a job made and what it cost, from its committed output alone.

`tokens_digest` is one number for "the same tokens": SHA-256, in input order, over each sample's row
id (UTF-8 behind its u32 length), u32 sample index, u32 token count and u32 token ids, all
little-endian; an error row has count 0xFFFFFFFF and no ids. Retries, workers, batches and drafts do
not change it.
"""

import hashlib
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.reading import Committed, OpenJob, read_committed
from jobs.scoring import SCORED_COLUMNS, Tally, score_rows
from jobs.spread import Spread, spread_of
from manifests.columns import METADATA_DISTRIBUTION_PRESERVING
from manifests.committed import committed_rows
from manifests.records import CommitRecord

ERROR_COUNT = 0xFFFFFFFF
_SUMMED = (
    "tokens",
    "tokens_with_stop",
    "prompt_tokens",
    "nfe",
    "nfe_prefill",
    "nfe_store",
    "transitions",
    "rounds",
    "drafted",
    "accepted",
    "positions",
    "wall_s",
    "queue_s",
)
_TOTALS = ("tokens", "tokens_with_stop", "prompt_tokens", "positions")
_MEANS = ("nfe", "nfe_prefill", "nfe_store", "rounds", "drafted", "accepted", "wall_s", "queue_s")
_SPREAD = ("nfe", "tokens", "wall_s")
_RULE = (
    *("rule", "tau", "denoising_steps", "entropy_bound", "temperature", "top_k", "top_p"),
    "verifier",
)
_COLUMNS = (*_SUMMED, "id", "sample", "token_ids", "finish_reason", "error_class")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStats:
    """Figures of a job; a mean or rate is None where nothing was decoded."""

    job: str
    complete: bool
    shards: int
    shards_total: int
    rows: int
    samples: int
    ok: int
    errors: int
    error_classes: dict[str, int]
    finish_reasons: dict[str, int]
    tokens: int
    tokens_with_stop: int
    prompt_tokens: int
    """Of all samples, chat template included: a row with n samples counts n times."""
    nfe_per_sample: float | None
    """Denoise forwards, the headline."""
    draft_free_nfe_per_sample: float | None
    """Transitions: the forwards that draft-free decoding needs for the same tokens."""
    nfe_prefill_per_sample: float | None
    nfe_store_per_sample: float | None
    rounds_per_sample: float | None
    drafted_per_sample: float | None
    accepted_per_sample: float | None
    tokens_per_forward: float | None
    """Tokens by the samples' own forwards."""
    tokens_per_batch_forward: float | None
    """Tokens by the forwards of whole batches."""
    tokens_per_second: float | None
    """While at least one worker was decoding."""
    decoding_s: float
    target_s: float
    """Of all engines: in target forwards, in drafters, and in everything else."""
    drafter_s: float
    host_s: float
    prefix_hit_rate: float | None
    """Prefix pages that were there already, of all that samples asked for."""
    wall_s_per_sample: float | None
    queue_s_per_sample: float | None
    positions: int
    forwards: int
    """Of whole batches, as the workers were charged."""
    engine_s: float
    """Seconds in which workers decoded, added up over workers: what the job cost."""
    nfe_spread: Spread | None
    tokens_spread: Spread | None
    wall_s_spread: Spread | None
    distribution_preserving: bool | None
    distribution_reason: str | None
    replayed: int
    """Samples decoded again alone, because `decode.numerics` is fast."""
    diverged: int
    """Those of them whose tokens differed."""
    rule: dict[str, Any]
    """The rule's name, its constants and the verifier, as in `decode`."""
    accuracy: dict[str, float] | None
    scored: dict[str, int] | None
    scorer_errors: int
    tokens_digest: str

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(slots=True, kw_only=True)
class _Sums:
    """What one pass over the rows adds up."""

    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_SUMMED, 0))
    finish_reasons: Counter[str] = field(default_factory=Counter)
    error_classes: Counter[str] = field(default_factory=Counter)
    values: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _SPREAD})
    """Of samples that are no errors."""
    digest: Any = field(default_factory=hashlib.sha256)

    def add(self, table: pa.Table) -> None:
        for name in _SUMMED:
            self.sums[name] += pc.sum(table[name], min_count=0).as_py()
        good = table.filter(pc.is_null(table["error_class"]))
        for name, values in self.values.items():
            values += good[name].to_pylist()
        for counter, name in (
            (self.finish_reasons, "finish_reason"),
            (self.error_classes, "error_class"),
        ):
            counter.update(value for value in table[name].to_pylist() if value is not None)
        for part in digest_parts(table):
            self.digest.update(part)


def digest_parts(table: pa.Table) -> Iterator[bytes]:
    """The bytes of each row that `tokens_digest` is made over."""
    columns = (table[name].to_pylist() for name in ("id", "sample", "error_class", "token_ids"))
    for row_id, sample, error_class, token_ids in zip(*columns, strict=True):
        name = row_id.encode()
        head = struct.pack("<I", len(name)) + name + struct.pack("<I", sample)
        if error_class is not None:
            yield head + struct.pack("<I", ERROR_COUNT)
        else:
            yield head + struct.pack(f"<I{len(token_ids)}I", len(token_ids), *token_ids)


def job_stats(job: OpenJob, *, scorer: str | None = None) -> JobStats:
    """The figures of `job`, scored by `scorer` (`package.module:function`) if one is given.

    Reads every committed file once, twice with a scorer. Raises `DamagedError` for a file that is
    not what its record says, `ScoringError` if the scorer cannot be loaded.
    """
    committed = read_committed(job)
    sums = _Sums()
    for table in committed_rows(job.store, job.plan, committed.records, columns=_COLUMNS):
        sums.add(table)
    tally = score_rows(scorer, _scored_rows(job, committed)) if scorer else None
    return _stats(job, committed=committed, sums=sums, tally=tally)


def _scored_rows(job: OpenJob, committed: Committed) -> Iterator[dict[str, Any]]:
    for table in committed_rows(job.store, job.plan, committed.records, columns=SCORED_COLUMNS):
        yield from table.to_pylist()


def _stats(job: OpenJob, *, committed: Committed, sums: _Sums, tally: Tally | None) -> JobStats:
    records = list(committed.records.values())
    counts: dict[str, Any] = {
        name: sum(getattr(record, name) for record in records)
        for name in ("rows", "samples", "ok", "errors")
    }
    preserving, reason = _distribution(job, records)
    spreads: dict[str, Any] = {
        f"{name}_spread": spread_of(values) for name, values in sums.values.items()
    }
    return JobStats(
        job=job.plan.job_id,
        complete=committed.complete,
        shards=len(records),
        shards_total=len(job.plan.shards),
        error_classes=dict(sorted(sums.error_classes.items())),
        finish_reasons=dict(sorted(sums.finish_reasons.items())),
        distribution_preserving=preserving,
        distribution_reason=reason,
        replayed=counted(records, "replayed"),
        diverged=counted(records, "diverged"),
        rule={name: getattr(job.plan.job.decode, name) for name in _RULE},
        accuracy=tally.accuracy() if tally else None,
        scored=tally.scored if tally else None,
        scorer_errors=len(tally.errors) if tally else 0,
        tokens_digest=sums.digest.hexdigest(),
        engine_s=sum(record.engine_s for record in committed.all_records),
        **spreads,
        **counts,
        **_cost(sums.sums, records=committed.all_records, ok=counts["ok"]),
    )


def _cost(total: dict[str, float], *, records: list[CommitRecord], ok: int) -> dict[str, Any]:
    """Totals, means and rates; `None` where they would divide by zero."""
    decoding_s = busy_seconds(records)
    forwards = counted(records, "forwards")
    means = {f"{name}_per_sample": _ratio(total[name], ok) for name in _MEANS}
    totals = {name: int(total[name]) for name in _TOTALS}
    totals["forwards"] = forwards
    return (
        means
        | totals
        | {
            "draft_free_nfe_per_sample": _ratio(total["transitions"], ok),
            "tokens_per_forward": _ratio(total["tokens"], total["nfe"]),
            "tokens_per_batch_forward": _ratio(total["tokens"], forwards),
            "tokens_per_second": _ratio(total["tokens"], decoding_s),
            "decoding_s": decoding_s,
        }
        | engine_figures(records)
    )


def engine_figures(records: list[CommitRecord]) -> dict[str, float | None]:
    """Where the engines' time went, and how often a prefix page was there."""
    seconds = {
        f"{part}_s": counted(records, f"{part}_us") / 1e6 for part in ("target", "drafter", "host")
    }
    hits, misses = counted(records, "page_hits"), counted(records, "page_misses")
    return seconds | {"prefix_hit_rate": _ratio(hits, hits + misses)}


def counted(records: Iterable[CommitRecord], name: str) -> int:
    """The sum of one counter over all shards."""
    return sum(record.counters.get(name, 0) for record in records)


def _ratio(value: float, by: float) -> float | None:
    return value / by if by else None


def busy_seconds(records: Iterable[CommitRecord]) -> float:
    """Time in which at least one shard was being decoded; pauses between two runs do not count.

    A shard was being decoded for `engine_s` seconds before it was committed; the union of these
    intervals is taken.
    """
    intervals = sorted(
        (committed - record.engine_s, committed)
        for record in records
        for committed in [datetime.fromisoformat(record.committed).timestamp()]
    )
    busy_s, reached = 0.0, float("-inf")
    for start, end in intervals:
        busy_s += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return busy_s


def _distribution(job: OpenJob, records: Iterable[CommitRecord]) -> tuple[bool | None, str | None]:
    """Whether every committed file says that it keeps the target's distribution, and why."""
    said: set[str] = set()
    for record in records:
        with job.store.open_local(record.data_key) as path:
            metadata = pq.read_metadata(path).metadata or {}
        said.add(metadata.get(METADATA_DISTRIBUTION_PRESERVING.encode(), b"false: unsaid").decode())
    if not said:
        return None, None
    against = sorted(text for text in said if not text.startswith("true"))
    reasons = [text.partition(": ")[2] for text in against or sorted(said)]
    return not against, "; ".join(reasons)
