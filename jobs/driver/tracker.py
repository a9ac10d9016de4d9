"""Where the job stands, for people: commit records plus what the workers say they have since.

Samples of shards that have no record yet are counted as their worker says, so that a display moves
between commits; nothing rests on these figures.
"""

import os
import secrets
import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from manifests.plan import Plan
from manifests.records import ERRORS_OF, CommitRecord, Presence
from workers.actor import Heartbeat
from workers.stream import Totals


def new_epoch() -> str:
    """Names one driver process: when it began, and something random."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def totals_of(records: Iterable[CommitRecord]) -> Totals:
    """Sums over commit records."""
    counters: Counter[str] = Counter()
    ok = errors = 0
    for record in records:
        counters.update(record.counters)
        ok, errors = ok + record.ok, errors + record.errors
    return Totals(
        ok=ok,
        errors=errors,
        tokens=counters["tokens"],
        nfe=counters["nfe"],
        drafted=counters["drafted"],
        accepted=counters["accepted"],
        error_classes=errors_by_class(counters),
    )


def errors_by_class(counters: Mapping[str, int]) -> dict[str, int]:
    """Error rows by class, as the counters of commit records have them."""
    named = sorted(item for item in counters.items() if item[0].startswith(ERRORS_OF))
    return {name.removeprefix(ERRORS_OF): count for name, count in named}


@dataclass(slots=True, kw_only=True)
class Tracker:
    """Adds up one run of a plan."""

    plan: Plan
    records: dict[int, CommitRecord]
    """All commit records known; grows."""
    epoch: str = field(default_factory=new_epoch)
    _of_worker: dict[str, list[CommitRecord]] = field(default_factory=dict)
    _tokens_before: int = 0
    _cost_before: float = 0.0
    _began: float | None = None

    def __post_init__(self) -> None:
        self._tokens_before = totals_of(self.records.values()).tokens
        self._cost_before = self._cost_done()

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
        classes: Counter[str] = Counter()
        for part in parts:
            classes.update(part.error_classes)
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
            drafted=sum(p.drafted for p in parts),
            accepted=sum(p.accepted for p in parts),
            error_classes=dict(sorted(classes.items())),
            rate_tokens_s=self._rate(tokens, now=now),
            eta_s=self._eta_s(ok + errors, now=now),
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
            drafted=max(0, beat.totals.drafted - done.drafted),
            accepted=max(0, beat.totals.accepted - done.accepted),
            error_classes={
                name: count - done.error_classes.get(name, 0)
                for name, count in beat.totals.error_classes.items()
                if count > done.error_classes.get(name, 0)
            },
        )

    def _rate(self, tokens: int, *, now: float) -> float:
        if self._began is None or now <= self._began:
            return 0.0
        return max(0, tokens - self._tokens_before) / (now - self._began)

    def _cost_done(self) -> float:
        return sum(self.plan.shards[shard].expected_cost for shard in self.records)

    def _eta_s(self, samples: int, *, now: float) -> float | None:
        """Seconds to the end at the pace of this run so far, by the shards' expected costs.

        Samples without a record count with the mean cost of the shards that have none.
        """
        if self._began is None or now <= self._began:
            return None
        done, total = self._cost_done(), sum(shard.expected_cost for shard in self.plan.shards)
        committed = sum(record.samples for record in self.records.values())
        missing = self.plan.rows * self.plan.job.sampling.n - committed
        if missing > 0:
            done += (total - done) * min(1.0, (samples - committed) / missing)
        gained = done - self._cost_before
        return None if gained <= 0.0 else (total - done) * (now - self._began) / gained
