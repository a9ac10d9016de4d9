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

import numpy as np
import torch

from spot.conditionals import stale_of
from spot.drafters.base import Drafter, DraftRequest
from spot.limits import Limits
from spot.targets.base import Conditionals, State, Target, evaluate
from spot.trajectory import Trajectory
from spot.transition import Rule
from spot.verification import Walk, signed, transitions, walk
from workers.budget import BudgetPolicy
from workers.prefix_cache import PrefixCache
from workers.rounds import Entry, Packer, Round, ready, take_stores
from workers.samples import SampleRequest, SampleResult
from workers.sequence import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What the engine needs to know beside its parts."""

    rule: Rule
    batch: int
    num_pages: int
    traced: bool = False
    look_through: bool = True  # draft over the block boundary
    max_drafts_per_forward: int = 512


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target, self._settings, self._limits = target, settings, limits
        self._drafter, self._budget, self._clock = drafter, budget, clock
        self._cache = PrefixCache(settings.num_pages)
        self._pages = target.new_pages(settings.num_pages)
        self._length, self._mask_id = target.spec.block_length, target.spec.mask_id
        self._waiting: deque[tuple[float, SampleRequest]] = deque()
        self._active: list[Sequence] = []
        self._counts = {"forwards": 0, "positions": 0, "drafts": 0, "accepted": 0, "store_units": 0}

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
        return self._counts | hits

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
        self._admit()
        if not self._active:
            return []
        round_ = Round()
        take_stores(round_, self._active, length=self._length)
        able = ready(round_, self._active, self._cache)
        drafts, mass = self._draft(round_, able)
        self._pack(round_, able, drafts)
        found = self._evaluate(round_)
        accepted = self._walk(round_, found) if found is not None else 0
        self._observe(round_, mass=mass, accepted=accepted)
        return self._retire()

    def _pages_needed(self, request: SampleRequest) -> int:
        return -(-self._limits(request).end // self._length)

    def _admit(self) -> None:
        """Let waiting samples in while slots and pages for their whole length are there."""
        promised = self._promised()
        while self._waiting and len(self._active) < self._settings.batch:
            needed = self._pages_needed(self._waiting[0][1])
            if promised + needed > self._cache.num_available:
                return
            arrived, request = self._waiting.popleft()
            sequence = self._enter(request, arrived)
            self._active.append(sequence)
            promised += needed - len(sequence.pages)

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

    def _pack(self, round_: Round, able: list[Sequence], drafts: list[list[State]]) -> None:
        packer = Packer(
            round_=round_,
            cache=self._cache,
            mask_id=self._mask_id,
            spare_pages=max(0, self._cache.num_available - self._promised()),
        )
        for sequence, states in zip(able, drafts, strict=True):
            packer.add(sequence, states)

    def _draft(self, round_: Round, able: list[Sequence]) -> tuple[list[list[State]], float]:
        """Drafted states of each sequence, and the mass that they promise together."""
        nothing: list[list[State]] = [[] for _ in able]
        willing = [i for i, s in enumerate(able) if s.stale is not None]
        num_units = len(able) + len(round_.stores)
        if self._drafter is None or not willing:
            return nothing, 0.0
        room = self._settings.max_drafts_per_forward // len(willing)
        budget = min(room, self._budget.ask(len(willing), num_units))
        if budget == 0:
            return nothing, 0.0
        began = self._clock()
        proposed = self._drafter.propose([self._request(able[i], budget) for i in willing])
        self._budget.observe_drafting(self._clock() - began)
        masses = [p.masses.astype(np.float64) for p in proposed]
        counts = self._budget.choose(masses, num_units=num_units)
        for i, drafts, count in zip(willing, proposed, counts, strict=True):
            nothing[i] = list(drafts.states[:count])
        return nothing, float(sum(m[:n].sum() for m, n in zip(masses, counts, strict=True)))

    def _request(self, sequence: Sequence, budget: int) -> DraftRequest:
        assert sequence.stale is not None, "no stale conditionals when a block opens"
        return DraftRequest(
            root=sequence.root,
            stale=sequence.stale,
            start=sequence.block * self._length,
            key=sequence.request.key,
            budget=budget,
            look_through=self._settings.look_through,
        )

    def _evaluate(self, round_: Round) -> Conditionals | None:
        """The forward; None if the round only stores."""
        self._seconds = -self._clock()
        found = None
        if round_.states:
            units = round_.states + round_.stores
            found = evaluate(self._target, units, self._pages, num_states=len(round_.states))
        else:
            self._target.hidden(round_.stores, self._pages)
        self._seconds += self._clock()
        for page in round_.written:
            self._cache.mark_clean(page)
        return found

    def _walk(self, round_: Round, found: Conditionals) -> int:
        """Every sample follows its own path; returns accepted drafts."""
        entries = round_.entries
        keys = [[signed(e.sequence.request.key)] * len(e.states) for e in entries]
        phi = transitions(
            found,
            states=torch.tensor([index for e in entries for index in e.indices]),
            starts=torch.tensor([start for e in entries for start in e.starts()]),
            keys=torch.tensor([key for part in keys for key in part]),
            rule=self._settings.rule,
        )
        first, going = 0, []
        accepted = 0
        for entry in entries:
            step = walk(
                entry.states,
                phi,
                first=first,
                start=entry.sequence.block * self._length,
                mask_id=self._mask_id,
                limits=entry.sequence.limits,
                openings=entry.openings,
            )
            first += len(entry.states)
            accepted += step.accepted
            if self._move_on(entry, step):
                going.append((entry.sequence, entry.indices[step.last]))
        self._keep_stale(found, going)
        return accepted

    def _move_on(self, entry: Entry, step: Walk) -> bool:
        """Leave a sample where its walk ended; whether it goes on inside a block."""
        sequence = entry.sequence
        sequence.trajectory.commits += step.commits
        sequence.trajectory.cost.accepted += step.accepted
        crossed = None if step.crossed is None else step.crossed.tobytes()
        for name, page in entry.looked.items():
            if name == crossed:
                sequence.cross(page)
            else:
                self._cache.release([page])
        sequence.root, sequence.end = step.root, step.end
        if step.end is not None:
            return False
        if not (step.root == self._mask_id).any():
            sequence.finish_block(self._cache, mask_id=self._mask_id)
            return False
        return True

    def _keep_stale(self, found: Conditionals, going: list[tuple[Sequence, int]]) -> None:
        """Stale conditionals of the last accepted states, for drafting."""
        if self._drafter is None or not going:
            return
        kept = stale_of(found, [last for _, last in going])
        for (sequence, _), stale in zip(going, kept, strict=True):
            sequence.stale = stale

    def _observe(self, round_: Round, *, mass: float, accepted: int) -> None:
        self._counts["forwards"] += 1
        self._counts["positions"] += round_.num_units * self._length
        self._counts["store_units"] += len(round_.stores)
        self._counts["drafts"] += sum(len(e.states) - 1 for e in round_.entries)
        self._counts["accepted"] += accepted
        self._budget.observe_round(
            num_units=round_.num_units, seconds=self._seconds, mass=mass, accepted=accepted
        )

    def _retire(self) -> list[SampleResult]:
        done = [s for s in self._active if s.end is not None]
        self._active = [s for s in self._active if s.end is None]
        for sequence in done:
            self._cache.release(sequence.pages)
        now = self._clock()
        return [s.result(now=now, traced=self._settings.traced) for s in done]
