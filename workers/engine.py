"""The batched decoder: continuous batching of block states, tested equal to ``spot.decoder``.

A round: waiting samples enter free slots; page writes, roots and drafts of all sequences become one
plain description; one forward evaluates it; every sample walks; finished ones leave. Sequences may
be at different blocks and stages. What is drafted, shared or packed together never changes a
sample's trajectory.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from spot.drafters.base import Drafter, Drafts, Stale
from spot.limits import Limits
from spot.released import check_schedule
from spot.targets.base import Conditionals, Target
from spot.trajectory import Trajectory
from spot.transition import Rule
from spot.verification import VerifierName, Walk, check_verifier
from workers.block_counts import BlockCounts
from workers.budget import Ask, BudgetPolicy, Spent
from workers.drafting import Drafting, fresh_of, masked_behind, size_of
from workers.forwarding import Forwarder
from workers.prefix_cache import PrefixCache
from workers.rounds import Entry, FullDrafts, Packer, Round, ready, take_stores
from workers.samples import SampleRequest, SampleResult
from workers.sequence import Sequence
from workers.totals import Totals
from workers.walking import walk_entries


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What the engine needs to know beside its parts.

    Raises:
        ValueError: the parts do not go together.
    """

    rule: Rule
    batch: int
    num_pages: int
    traced: bool = False
    verifier: VerifierName = "coupled"
    full_drafts: FullDrafts = "look_through"
    fused_store: bool = True  # a block's store shares the forward with the next block's opening
    padded: bool = False  # every drafted forward has 1 + budget units, whatever was drafted
    max_drafts_per_forward: int = 512

    def __post_init__(self) -> None:
        if self.full_drafts == "look_through" and not self.fused_store:
            raise ValueError("drafts look through to the next block only with fused stores")
        check_verifier(self.verifier, rule=self.rule)


class Observer(Protocol):
    """Looks on while samples are decoded: collection, calibration, diagnostics."""

    def walked(self, entry: Entry, made: Walk, fresh: Stale) -> None:
        """A sample's walk, before the sample moves on.

        ``fresh`` are the conditionals of the last accepted state.
        """


class Engine:
    """Decodes a stream of samples, up to ``batch`` at a time."""

    def __init__(
        self,
        target: Target,
        *,
        settings: EngineSettings,
        limits: Callable[[SampleRequest], Limits],
        drafter: Drafter | None = None,
        budget: BudgetPolicy,
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_schedule(settings.rule, length=target.spec.block_length)
        self._settings, self._limits = settings, limits
        self._clock, self._observer = clock, observer
        self._cache = PrefixCache(settings.num_pages)
        self._forwarder = Forwarder(target, target.new_pages(settings.num_pages))
        self._length, self._mask_id = target.spec.block_length, target.spec.mask_id
        self._drafting = Drafting(
            drafter,
            budget,
            length=self._length,
            mask_id=self._mask_id,
            full_states=settings.full_drafts != "drop",
            clock=clock,
        )
        self._waiting: deque[tuple[float, SampleRequest]] = deque()
        self._active: list[Sequence] = []
        self._totals = Totals()
        self._blocks = BlockCounts()

    def add(self, request: SampleRequest) -> None:
        """Queue one sample.

        Raises:
            ValueError: the sample could never fit into the pool of pages.
        """
        if self._pages_needed(request) > self._settings.num_pages:
            raise ValueError("the sample needs more prefix pages than there are")
        self._waiting.append((self._clock(), request))

    def has_work(self) -> bool:
        """Whether a sample waits or is being decoded."""
        return bool(self._waiting or self._active)

    @property
    def num_waiting(self) -> int:
        """Samples that wait for a slot."""
        return len(self._waiting)

    @property
    def num_active(self) -> int:
        """Samples being decoded."""
        return len(self._active)

    def counters(self) -> dict[str, int]:
        """What has been spent since the engine was made."""
        hits = {"page_hits": self._cache.hits, "page_misses": self._cache.misses}
        spent = self._totals.counters() | hits | self._blocks.counters()
        return spent | {"out_of_memory": self._forwarder.num_out_of_memory}

    def check(self) -> None:
        """Recompute the invariants of the page bookkeeping."""
        self._cache.check()
        held = {page for sequence in self._active for page in sequence.pages}
        assert len(held) == self._cache.num_held, "held pages and active samples differ"

    def abort(self, shard: int) -> None:
        """Forget all samples of a shard; pages that others wait for change hands."""
        self._waiting = deque(w for w in self._waiting if w[1].shard != shard)
        leaving = [s for s in self._active if s.request.shard == shard]
        self._active = [s for s in self._active if s.request.shard != shard]
        for sequence in leaving:
            for write in sequence.writes:
                heir = next((s for s in self._active if write.page in s.pages), None)
                if heir is not None:
                    heir.writes.append(write)
            self._cache.release(sequence.pages)

    def step(self) -> list[SampleResult]:
        """One round; returns the samples that it finished."""
        began = self._clock()
        self._admit()
        if not self._active:
            return []
        round_ = Round()
        fused = self._settings.fused_store
        take_stores(round_, self._active, length=self._length, fused=fused)
        able = ready(round_, self._active, self._cache, fused=fused)
        self._pack(round_, able, self._draft(round_, able))
        found = self._evaluate(round_)
        walks = self._walk(round_, found) if found is not None else []
        finished = self._retire()
        self._observe(round_, found, walks, began=began)
        return finished

    def _pages_needed(self, request: SampleRequest) -> int:
        return -(-self._limits(request).end // self._length)

    def _admit(self) -> None:
        """Let waiting samples in while slots and pages for their whole length are there."""
        promised = self._promised()
        batch = self._at_most(self._settings.batch)
        while self._waiting and len(self._active) < batch:
            needed = self._pages_needed(self._waiting[0][1])
            if promised + needed > self._cache.num_available:
                return
            arrived, request = self._waiting.popleft()
            sequence = self._enter(request, arrived)
            self._active.append(sequence)
            promised += needed - len(sequence.pages)

    def _at_most(self, num_units: int) -> int:
        """A number of units, or the ceiling that memory has set."""
        ceiling = self._forwarder.ceiling
        return num_units if ceiling is None else min(num_units, ceiling)

    def _enter(self, request: SampleRequest, arrived: float) -> Sequence:
        sequence = Sequence(
            request=request,
            limits=self._limits(request),
            prompt=np.asarray(request.prompt_ids, np.int64),
            arrived=arrived,
            admitted=self._clock(),
            trajectory=Trajectory(prompt_tokens=len(request.prompt_ids)),
        )
        sequence.enter(self._cache, length=self._length, mask_id=self._mask_id)
        return sequence

    def _promised(self) -> int:
        """Pages that samples in flight may still need."""
        return sum(self._pages_needed(s.request) - len(s.pages) for s in self._active)

    def _pack(self, round_: Round, able: list[Sequence], drafts: list[Drafts]) -> None:
        packer = Packer(
            round_=round_,
            cache=self._cache,
            mask_id=self._mask_id,
            full_drafts=self._settings.full_drafts,
            spare_pages=max(0, self._cache.num_available - self._promised()),
        )
        pad_to = 1 + self._drafting.asked if self._settings.padded else 0
        for sequence, drafted in zip(able, drafts, strict=True):
            packer.add(sequence, drafted, pad_to=0 if sequence.stale is None else pad_to)

    def _draft(self, round_: Round, able: list[Sequence]) -> list[Drafts]:
        """Drafted states of each sequence."""
        most = self._settings.max_drafts_per_forward
        num_units = len(able) + len(round_.stores)
        room = max(0, self._at_most(most + num_units) - num_units)
        return self._drafting.draft(able, num_stores=len(round_.stores), room=room)

    def _evaluate(self, round_: Round) -> Conditionals | None:
        """The forward; None if the round only stores."""
        self._seconds = -self._clock()
        found = self._forwarder.run(round_)
        self._seconds += self._clock()
        for page in round_.written:
            self._cache.mark_clean(page)
        return found

    def _walk(self, round_: Round, found: Conditionals) -> list[Walk]:
        """Every sample follows its own path and is left where that ended."""
        entries, settings = round_.entries, self._settings
        walks = walk_entries(
            entries, found, rule=settings.rule, verifier=settings.verifier, mask_id=self._mask_id
        )
        masked = masked_behind(walks, mask_id=self._mask_id)
        asks = self._asks(entries, walks, masked)
        wanted = [self._observer is not None or ask.drafts > 0 for ask in asks]
        fresh = fresh_of(found, entries, walks, wanted=wanted)
        for entry, made, n, stale, ask in zip(entries, walks, masked, fresh, asks, strict=True):
            if self._observer is not None:
                assert stale is not None, "an observer is shown everything"
                self._observer.walked(entry, made, stale)
            self._move_on(entry, made, masked=n)
            if n:
                entry.sequence.stale, entry.sequence.ask = stale, ask
        return walks

    def _asks(self, entries: list[Entry], walks: list[Walk], masked: list[int]) -> list[Ask]:
        """What each sample may draft next round."""
        num_roots = len(masked) - masked.count(0)
        full = sum(w.end is None for w in walks) - num_roots
        staying = len(self._active) - sum(w.end is not None for w in walks)
        entering = min(len(self._waiting), self._settings.batch - staying)
        num_openings = staying - num_roots + entering
        return self._drafting.ask(
            entries, walks, masked=masked, num_openings=num_openings, num_stores=full
        )

    def _move_on(self, entry: Entry, made: Walk, *, masked: int) -> None:
        """Leave a sample where its walk ended."""
        sequence = entry.sequence
        first_block = len(sequence.prompt) // self._length
        self._blocks.add(sequence.block - first_block, accepted=made.accepted)
        sequence.trajectory.moves += made.moves
        sequence.trajectory.cost.accepted += made.accepted
        sequence.step += len(made.moves)
        page = self._settle(entry, made)
        sequence.root, sequence.end = made.root, made.end
        if made.end is None and not masked:
            sequence.finish_block(self._cache, mask_id=self._mask_id, page=page)

    def _settle(self, entry: Entry, made: Walk) -> int | None:
        """Keep the page of an accepted full draft, give the others back.

        A page behind which the walk has gone on joins the prefix here; one that holds the new root
        is returned.
        """
        kept = None
        crossed = None if made.crossed is None else made.crossed.tobytes()
        for name, page in entry.stored.items():
            if name == crossed:
                entry.sequence.cross(page)
                entry.sequence.step = made.moves_behind
            elif crossed is None and made.end is None and name == made.root.tobytes():
                kept = page
            else:
                self._cache.release([page])
        return kept

    def _observe(
        self, round_: Round, found: Conditionals | None, walks: list[Walk], *, began: float
    ) -> None:
        """Count what the round has spent, and let the policy learn from it."""
        entries, target_s, drafter_s = round_.entries, self._seconds, self._drafting.seconds
        accepted = [i in w.path for e, w in zip(entries, walks, strict=True) for i in _drafts(e)]
        spent = Spent(
            size=size_of(
                round_, length=self._length, num_rows=0 if found is None else len(found.token)
            ),
            target_s=target_s,
            drafter_s=drafter_s,
            host_s=max(0.0, self._clock() - began - target_s - drafter_s),
            num_sequences=len(entries),
            masses=np.array([e.masses[i] for e in entries for i in _drafts(e)]),
            accepted=np.array(accepted, bool),
        )
        self._drafting.observe(spent)
        self._totals.add(spent, num_stores=len(round_.stores))

    def _retire(self) -> list[SampleResult]:
        done = [s for s in self._active if s.end is not None]
        self._active = [s for s in self._active if s.end is None]
        for sequence in done:
            self._cache.release(sequence.pages)
        now = self._clock()
        return [s.result(now=now, traced=self._settings.traced) for s in done]


def _drafts(entry: Entry) -> range:
    """Where a sample's drafts stand among its states."""
    return range(1, len(entry.states))
