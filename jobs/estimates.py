"""What a job will take, from a rate that was measured: by a preview, or by its own workers."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from jobs.durations import duration
from manifests.records import CommitRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What one worker was seen to do."""

    samples: int
    tokens: int
    seconds: float
    source: str
    """Where it was seen, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What the samples that are still to be decoded will take, if they are like those measured."""

    tokens: int
    time_s: float
    worker_hours: float
    tokens_per_second: float
    """Of one worker."""
    source: str

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def lines(self, *, num_workers: int) -> list[tuple[str, str]]:
        """As names and values to print."""
        return [
            ("expected tokens", f"about {self.tokens}"),
            (
                "expected time",
                f"about {duration(self.time_s)} on {num_workers} workers, "
                f"{self.worker_hours:.2g} worker hours ({self.source})",
            ),
        ]


def estimate(rate: Rate, *, num_samples: int, num_workers: int) -> Estimate | None:
    """The estimate for `num_samples` more, or None where the rate says nothing."""
    if not rate.samples or not rate.tokens or rate.seconds <= 0.0:
        return None
    tokens_per_second = rate.tokens / rate.seconds
    tokens = num_samples * rate.tokens / rate.samples
    worker_s = tokens / tokens_per_second
    return Estimate(
        tokens=round(tokens),
        time_s=worker_s / num_workers,
        worker_hours=worker_s / 3600.0,
        tokens_per_second=tokens_per_second,
        source=rate.source,
    )


def rate_of_records(records: Iterable[CommitRecord]) -> Rate:
    """What the job's own workers did so far."""
    records = list(records)
    return Rate(
        samples=sum(record.samples for record in records),
        tokens=sum(record.counters.get("tokens", 0) for record in records),
        seconds=sum(record.engine_s for record in records),
        source=f"as its {len(records)} committed shards took",
    )
