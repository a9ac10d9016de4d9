"""The stream of samples through one worker: rows of up to two shards, one unit of work at a time.

One thread decodes; any thread may submit a shard and wait for its samples. A submitted shard's rows
queue up behind those of the shard before it, so that the next one's rows enter as the last one's
leave; a shard's feed says in which portions. What has been spent since the previous shard left is
charged to the shard that leaves, so that charges add up to all that was spent.

An exception out of the work ends the stream: every shard it holds fails with `EngineError`, and so
does each later one. The worker has to be replaced then.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from manifests.errors import ManifestError
from workers.errors import EngineError, describe
from workers.feeding import AllRows, Feed
from workers.gate import Gate
from workers.samples import OutputSample
from workers.shard_assembly import ShardAssembly
from workers.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What a shard is charged with: counters and seconds spent in steps."""

    counters: dict[str, int]
    engine_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Samples that came out of the stream so far."""

    ok: int = 0
    errors: int = 0
    tokens: int = 0
    nfe: int = 0
    drafted: int = 0
    accepted: int = 0
    error_classes: Mapping[str, int] = field(default_factory=dict)

    def plus(self, sample: OutputSample) -> "Totals":
        """With one more sample."""
        failed = sample.error_class is not None
        return Totals(
            ok=self.ok + (not failed),
            errors=self.errors + failed,
            tokens=self.tokens + sample.num_tokens,
            nfe=self.nfe + sample.nfe,
            drafted=self.drafted + sample.drafted,
            accepted=self.accepted + sample.accepted,
            error_classes=_one_more(self.error_classes, sample.error_class),
        )


def _one_more(counts: Mapping[str, int], name: str | None) -> Mapping[str, int]:
    return counts if name is None else {**counts, name: counts.get(name, 0) + 1}


class SampleStream:
    """Shards in, complete assemblies with their charge out."""

    def __init__(self, work: Work, *, gate: Gate, clock: Callable[[], float]) -> None:
        self._work = work
        self._gate = gate
        self._clock = clock
        self._changed = threading.Condition()
        self._feeds: list[tuple[ShardAssembly, Feed]] = []  # those that have rows left
        self._held: dict[int, tuple[ShardAssembly, Future[Charge]]] = {}
        self._stopping = False
        self._charged: dict[str, int] = {}
        self._spent_s = 0.0
        # Replaced by the decoding thread only, and as a whole: any thread may read them.
        self.totals = Totals()
        self.num_steps = 0

    @property
    def is_dead(self) -> bool:
        """Whether it takes no more shards."""
        return self._stopping

    def submit(self, assembly: ShardAssembly, feed: Feed | None = None) -> "Future[Charge]":
        """Queue a shard; the future is done when every sample is in the assembly."""
        future: Future[Charge] = Future()
        with self._changed:
            if self._stopping:
                future.set_exception(EngineError("the worker takes no more shards"))
                return future
            self._held[assembly.shard.shard] = (assembly, future)
            self._feeds.append((assembly, feed or AllRows()))
            self._changed.notify_all()
        return future

    def stop(self) -> None:
        """Take no more shards, and fail those that are held."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def run(self) -> None:
        """Decode until stopped; the body of the worker's decoding thread."""
        try:
            while self._wait_for_work():
                self._advance()
            self._fail_all(EngineError("the worker was stopped"))
        except Exception as error:
            self._fail_all(EngineError(describe(error)))

    def _wait_for_work(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._feeds or self._work.has_work())
            return not self._stopping

    def _advance(self) -> None:
        with self._changed:
            feeds = list(self._feeds)
        began_s = self._clock()
        samples = [sample for feed in feeds for sample in self._admit(*feed)]
        samples += self._work.step()
        self._spent_s += self._clock() - began_s
        self.num_steps += 1
        self._collect(samples)

    def _admit(self, assembly: ShardAssembly, feed: Feed) -> list[OutputSample]:
        try:
            rows = feed.due(assembly)
        except (OSError, ManifestError) as error:  # of storage, between rows: the engine is sound
            self._forget(assembly).set_exception(error)
            return []
        if feed.is_exhausted(assembly):
            self._drop_feed(assembly)
        return self._work.admit(assembly.shard, rows) if rows else []

    def _forget(self, assembly: ShardAssembly) -> "Future[Charge]":
        self._drop_feed(assembly)
        with self._changed:
            return self._held.pop(assembly.shard.shard)[1]

    def _drop_feed(self, assembly: ShardAssembly) -> None:
        with self._changed:
            self._feeds = [entry for entry in self._feeds if entry[0] is not assembly]

    def _collect(self, samples: Iterable[OutputSample]) -> None:
        for sample in samples:
            self._gate.wait(shard=sample.shard, row=sample.row)
            assembly, _ = self._held[sample.shard]
            assembly.add(sample)
            self.totals = self.totals.plus(sample)
            if assembly.is_complete:
                self._forget(assembly).set_result(self._charge())

    def _charge(self) -> Charge:
        counters = self._work.counters()
        spent = {name: value - self._charged.get(name, 0) for name, value in counters.items()}
        charge = Charge(counters=spent, engine_s=self._spent_s)
        self._charged, self._spent_s = counters, 0.0
        return charge

    def _fail_all(self, error: EngineError) -> None:
        with self._changed:
            held, self._held = self._held, {}
            self._stopping = True
        for _, future in held.values():
            future.set_exception(error)
