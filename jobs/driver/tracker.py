"""Where the job stands, for people: commit records plus what the workers say they have since.

Samples of shards that have no record yet are counted as their worker says, so that a display moves
between commits; nothing rests on these figures. Sums are kept, and no record is.
"""

import os
import secrets
import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from manifests.plan import Plan, ShardPlan
from manifests.records import ERRORS_OF, CommitRecord, Presence
from workers.actor import Heartbeat
from workers.stream import Totals


def new_epoch() -> str:
    """Names one driver process: when it began, and something random."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def totals_of(record: CommitRecord) -> Totals:
    """What a commit record counts."""
    counters = Counter(record.counters)
    return Totals(
        ok=record.ok,
        errors=record.errors,
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


def sum_of(totals: Iterable[Totals]) -> Totals:
    """Added up."""
    totals = list(totals)
    classes: Counter[str] = Counter()
    for part in totals:
        classes.update(part.error_classes)
    return Totals(
        ok=sum(part.ok for part in totals),
        errors=sum(part.errors for part in totals),
        tokens=sum(part.tokens for part in totals),
        nfe=sum(part.nfe for part in totals),
        drafted=sum(part.drafted for part in totals),
        accepted=sum(part.accepted for part in totals),
        error_classes=dict(sorted(classes.items())),
    )


def above(said: Totals, done: Totals) -> Totals:
    """What is said beyond what is done; never negative."""
    return Totals(
        ok=max(0, said.ok - done.ok),
        errors=max(0, said.errors - done.errors),
        tokens=max(0, said.tokens - done.tokens),
        nfe=max(0, said.nfe - done.nfe),
        drafted=max(0, said.drafted - done.drafted),
        accepted=max(0, said.accepted - done.accepted),
        error_classes={
            name: count - done.error_classes.get(name, 0)
            for name, count in said.error_classes.items()
            if count > done.error_classes.get(name, 0)
        },
    )


@dataclass(slots=True, kw_only=True)
class Tracker:
    """Adds up one run over the shards that a job has open."""

    plan: Plan
    shards: tuple[ShardPlan, ...]
    before: frozenset[int] = frozenset()
    """Shards that were committed when the run began; their records are told later."""
    epoch: str = field(default_factory=new_epoch)
    gpus_per_worker: float = 1.0
    """What a worker counts as."""
    committed_shards: set[int] = field(default_factory=set)
    _counted: set[int] = field(default_factory=set)
    _totals: Totals = field(default_factory=Totals)
    _of_worker: dict[str, Totals] = field(default_factory=dict)
    _heartbeats: dict[str, Heartbeat] = field(default_factory=dict)
    _new: Totals = field(default_factory=Totals)
    """Of the shards that were committed in this run."""
    _new_cost: float = 0.0
    _missing_cost: float = 0.0
    _missing_samples: int = 0
    _began: float | None = None
    _gpu_s: float = 0.0
    _held_until: float | None = None

    def __post_init__(self) -> None:
        self.committed_shards |= self.before
        missing = [shard for shard in self.shards if shard.shard not in self.before]
        self._missing_cost = sum(shard.expected_cost for shard in missing)
        self._missing_samples = sum(shard.rows for shard in missing) * self.plan.job.sampling.n

    def joined(self, now: float) -> None:
        """A worker is ready: the clock of the rate starts with the first one."""
        self._began = now if self._began is None else self._began

    def heard(self, worker: str, heartbeat: Heartbeat) -> None:
        """What a worker says."""
        self._heartbeats[worker] = heartbeat

    def left(self, worker: str) -> dict[int, str]:
        """The worker is gone: what it did not commit does not count. Its attempts, by shard."""
        heartbeat = self._heartbeats.pop(worker, None)
        running = heartbeat.running if heartbeat else ()
        return {attempt.shard: attempt.attempt for attempt in running}

    def committed(self, record: CommitRecord, *, worker: str | None = None) -> bool:
        """The shard has this record; whether it is counted now and was not before."""
        if record.shard in self._counted:
            return False
        totals = totals_of(record)
        self._counted.add(record.shard)
        self.committed_shards.add(record.shard)
        self._totals = sum_of((self._totals, totals))
        if record.shard not in self.before:
            self._committed_now(record, totals)
        if worker is not None:
            self._of_worker[worker] = sum_of((self._of_worker.get(worker, Totals()), totals))
        return True

    def _committed_now(self, record: CommitRecord, totals: Totals) -> None:
        cost = self.plan.shards[record.shard].expected_cost
        self._new = sum_of((self._new, totals))
        self._new_cost += cost
        self._missing_cost -= cost
        self._missing_samples -= record.samples

    def presence(self, *, num_workers: int, now: float, finished: bool = False) -> Presence:
        """What there is to say now; the workers have been held since this was asked last."""
        self._hold(num_workers, now=now)
        running = sum_of(self._uncommitted(worker) for worker in self._heartbeats)
        totals = sum_of((self._totals, running))
        return Presence(
            epoch=self.epoch,
            host=socket.gethostname(),
            pid=os.getpid(),
            updated=datetime.now(UTC).isoformat(timespec="milliseconds"),
            shards_before=len(self.before),
            shards_done=len(self.committed_shards),
            shards_total=len(self.shards),
            rows_done=(totals.ok + totals.errors) // self.plan.job.sampling.n,
            samples_ok=totals.ok,
            samples_error=totals.errors,
            tokens=totals.tokens,
            nfe=totals.nfe,
            drafted=totals.drafted,
            accepted=totals.accepted,
            error_classes=dict(totals.error_classes),
            rate_tokens_s=self._rate(self._new.tokens + running.tokens, now=now),
            eta_s=self._eta_s(running.ok + running.errors, now=now),
            workers=num_workers,
            gpu_s=self._gpu_s,
            finished=finished,
        )

    def _hold(self, num_workers: int, *, now: float) -> None:
        held_s = 0.0 if self._held_until is None else max(0.0, now - self._held_until)
        self._gpu_s += held_s * num_workers * self.gpus_per_worker
        self._held_until = now

    def _uncommitted(self, worker: str) -> Totals:
        return above(self._heartbeats[worker].totals, self._of_worker.get(worker, Totals()))

    def _rate(self, new_tokens: int, *, now: float) -> float:
        if self._began is None or now <= self._began:
            return 0.0
        return new_tokens / (now - self._began)

    def _eta_s(self, num_running: int, *, now: float) -> float | None:
        """Seconds to the end at the pace of this run so far, by the shards' expected costs.

        Samples without a record count with the mean cost of the shards that have none.
        """
        if self._began is None or now <= self._began:
            return None
        share = min(1.0, num_running / self._missing_samples) if self._missing_samples else 0.0
        gained = self._new_cost + share * self._missing_cost
        left = (1.0 - share) * self._missing_cost
        return None if gained <= 0.0 else left * (now - self._began) / gained
