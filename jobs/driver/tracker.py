"""Where the job stands, for people: commit records plus what the workers say they have since.

Samples of shards that have no record yet are counted as their worker says, so that a display moves
between commits; nothing rests on these figures.
"""

import os
import secrets
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from manifests.plan import Plan
from manifests.records import CommitRecord, Presence
from workers.actor import Heartbeat
from workers.stream import Totals


def new_epoch() -> str:
    """Names one driver process: when it began, and something random."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def totals_of(records: Iterable[CommitRecord]) -> Totals:
    """Sums over commit records."""
    records = list(records)
    return Totals(
        ok=sum(record.ok for record in records),
        errors=sum(record.errors for record in records),
        tokens=sum(record.counters.get("tokens", 0) for record in records),
        nfe=sum(record.counters.get("nfe", 0) for record in records),
    )


@dataclass(slots=True, kw_only=True)
class Tracker:
    """Adds up one run of a plan."""

    plan: Plan
    records: dict[int, CommitRecord]
    """All commit records known; grows."""
    epoch: str = field(default_factory=new_epoch)
    _of_worker: dict[str, list[CommitRecord]] = field(default_factory=dict)
    _tokens_before: int = 0
    _began: float | None = None

    def __post_init__(self) -> None:
        self._tokens_before = totals_of(self.records.values()).tokens

    def joined(self, now: float) -> None:
        """A worker is ready: the clock of the rate starts with the first one."""
        self._began = now if self._began is None else self._began

    def committed(self, record: CommitRecord, *, worker: str) -> None:
        """The worker came to the end of a shard that has this record now."""
        self.records[record.shard] = record
        self._of_worker.setdefault(worker, []).append(record)

    def presence(
        self,
        heartbeats: Mapping[str, Heartbeat],
        *,
        num_workers: int,
        now: float,
        finished: bool = False,
    ) -> Presence:
        """What there is to say now."""
        parts = [totals_of(self.records.values())]
        parts += [self._uncommitted(worker, beat) for worker, beat in heartbeats.items()]
        ok, errors = sum(p.ok for p in parts), sum(p.errors for p in parts)
        tokens = sum(p.tokens for p in parts)
        return Presence(
            epoch=self.epoch,
            host=socket.gethostname(),
            pid=os.getpid(),
            updated=datetime.now(UTC).isoformat(timespec="milliseconds"),
            shards_done=len(self.records),
            shards_total=len(self.plan.shards),
            rows_done=(ok + errors) // self.plan.job.sampling.n,
            samples_ok=ok,
            samples_error=errors,
            tokens=tokens,
            nfe=sum(p.nfe for p in parts),
            rate_tokens_s=self._rate(tokens, now=now),
            workers=num_workers,
            finished=finished,
        )

    def _uncommitted(self, worker: str, beat: Heartbeat) -> Totals:
        done = totals_of(self._of_worker.get(worker, []))
        return Totals(
            ok=max(0, beat.totals.ok - done.ok),
            errors=max(0, beat.totals.errors - done.errors),
            tokens=max(0, beat.totals.tokens - done.tokens),
            nfe=max(0, beat.totals.nfe - done.nfe),
        )

    def _rate(self, tokens: int, *, now: float) -> float:
        if self._began is None or now <= self._began:
            return 0.0
        return max(0, tokens - self._tokens_before) / (now - self._began)
