"""The batched decoder of LLaDA-8B and Dream-7B, tested equal to ``spot.canvas_decoder``.

A round: waiting samples enter free slots; canvases of those at the beginning of a block are opened
together; roots and drafts of all others are evaluated together; every sample walks; finished ones
leave. Nothing outlives its block: these targets have no exact pages.

An opening is a forward of its own, with drafts or without, so the budget does not reckon with it:
what drafts save are forwards of states.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from spot.drafters.base import Drafter, Drafts
from spot.limits import Limits
from spot.released import check_schedule
from spot.targets.base import CacheContext, CanvasTarget, Conditionals
from spot.transition import Rule
from spot.verification import VerifierName, Walk, check_verifier
from workers.budget import BudgetPolicy, Spent
from workers.canvas_forwarding import CanvasForwarder
from workers.canvas_round import CanvasRound
from workers.canvas_sample import CanvasSample
from workers.drafting import Drafting, fresh_of, masked_behind
from workers.engine import Observer
from workers.forwarding import join
from workers.samples import SampleRequest, SampleResult
from workers.totals import Totals
from workers.walking import walk_entries


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasSettings:
    """What the engine needs to know beside its parts."""

    rule: Rule
    context: CacheContext
    batch: int
    traced: bool = False
    verifier: VerifierName = "coupled"
    max_drafts_per_forward: int = 512

    def __post_init__(self) -> None:
        check_verifier(self.verifier, rule=self.rule)


class CanvasEngine:
    """Decodes a stream of samples, up to ``batch`` at a time."""

    def __init__(
        self,
        target: CanvasTarget,
        *,
        settings: CanvasSettings,
        limits: Callable[[SampleRequest], Limits],
        drafter: Drafter | None = None,
        budget: BudgetPolicy,
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises ValueError if target and rule do not go together."""
        check_schedule(settings.rule, length=target.spec.block_length)
        self._settings, self._limits, self._clock = settings, limits, clock
        self._observer = observer
        self._length, self._mask_id = target.spec.block_length, target.spec.mask_id
        self._forwarder = CanvasForwarder(target, context=settings.context)
        self._drafting = Drafting(
            drafter,
            budget,
            length=self._length,
            mask_id=self._mask_id,
            full_states=False,
            clock=clock,
        )
        self._waiting: deque[tuple[float, SampleRequest]] = deque()
        self._active: list[CanvasSample] = []
        self._totals = Totals()
        self._num_openings = 0

    def add(self, request: SampleRequest) -> None:
        """Queue one sample."""
        self._waiting.append((self._clock(), request))

    def has_work(self) -> bool:
        """Whether a sample waits or is being decoded."""
        return bool(self._waiting or self._active)

    def counters(self) -> dict[str, int]:
        """What has been spent since the engine was made."""
        forwarder = self._forwarder
        return self._totals.counters() | {
            "openings": self._num_openings,
            "forwards": forwarder.num_forwards,
            "positions": forwarder.num_positions,
            "out_of_memory": forwarder.num_out_of_memory,
        }

    def abort(self, shard: int) -> None:
        """Forget all samples of a shard."""
        self._waiting = deque(w for w in self._waiting if w[1].shard != shard)
        self._active = [s for s in self._active if s.sequence.request.shard != shard]

    def step(self) -> list[SampleResult]:
        """One round; returns the samples that it finished."""
        began = self._clock()
        self._admit()
        if not self._active:
            return []
        round_ = self._pack()
        opened, opening_s = self._timed(lambda: self._forwarder.open(round_))
        found, states_s = self._timed(lambda: self._forwarder.evaluate(round_.units))
        walks = self._walk(round_, join(opened + found))
        results = self._retire()
        target_s, num_rows = opening_s + states_s, sum(len(part.token) for part in found)
        spent = self._spent(round_, walks, num_rows=num_rows, target_s=target_s, began=began)
        self._totals.add(spent, num_stores=0)
        self._num_openings += len(round_.entries) - spent.num_sequences
        if round_.units:  # openings have a share of the host's work
            share = spent.num_sequences / len(round_.entries)
            spent = replace(spent, target_s=states_s, host_s=share * spent.host_s)
            self._drafting.observe(spent)
        return results

    def _timed(self, run: Callable[[], list[Conditionals]]) -> tuple[list[Conditionals], float]:
        began = self._clock()
        return run(), self._clock() - began

    def _spent(
        self,
        round_: CanvasRound,
        walks: list[Walk],
        *,
        num_rows: int,
        target_s: float,
        began: float,
    ) -> Spent:
        """What a round took, and what became of the drafts of blocks that were open."""
        entries, drafter_s = round_.going, self._drafting.seconds
        made = list(zip(entries, walks[len(walks) - len(entries) :], strict=True))
        return Spent(
            size=round_.size(num_rows=num_rows),
            target_s=target_s,
            drafter_s=drafter_s,
            host_s=max(0.0, self._clock() - began - target_s - drafter_s),
            num_sequences=len(entries),
            masses=np.array([mass for entry in entries for mass in entry.masses[1:]]),
            accepted=np.array(
                [i in walk.path for e, walk in made for i in range(1, len(e.states))], bool
            ),
        )

    def _admit(self) -> None:
        while self._waiting and len(self._active) < self._settings.batch:
            arrived, request = self._waiting.popleft()
            sample = CanvasSample.enter(
                request,
                limits=self._limits(request),
                length=self._length,
                mask_id=self._mask_id,
                arrived=arrived,
                now=self._clock(),
            )
            self._active.append(sample)

    def _pack(self) -> CanvasRound:
        """What the round evaluates, drafts included."""
        round_ = CanvasRound()
        going = [s for s in self._active if s.opened is not None]
        for sample in self._active:
            if sample.opened is None:
                round_.open(sample)
        for sample, drafted in zip(going, self._draft(going), strict=True):
            round_.go_on(sample, drafted)
        return round_

    def _draft(self, going: list[CanvasSample]) -> list[Drafts]:
        room, ceiling = self._settings.max_drafts_per_forward, self._forwarder.ceiling
        if ceiling is not None:
            room = max(0, min(room, ceiling - len(going)))
        return self._drafting.draft([s.sequence for s in going], num_stores=0, room=room)

    def _walk(self, round_: CanvasRound, found: Conditionals) -> list[Walk]:
        """Every sample follows its own path."""
        settings, entries = self._settings, round_.entries
        walks = walk_entries(
            entries, found, rule=settings.rule, verifier=settings.verifier, mask_id=self._mask_id
        )
        masked = masked_behind(walks, mask_id=self._mask_id)
        asks = self._drafting.ask(entries, walks, masked=masked, num_openings=0, num_stores=0)
        wanted = [self._observer is not None or ask.drafts > 0 for ask in asks]
        fresh = fresh_of(found, entries, walks, wanted=wanted)
        for sample, entry, made, stale, ask in zip(
            round_.samples, entries, walks, fresh, asks, strict=True
        ):
            if self._observer is not None:
                assert stale is not None, "an observer is shown everything"
                self._observer.walked(entry, made, stale)
            sample.sequence.stale, sample.sequence.ask = stale, ask
            sample.move_on(made, mask_id=self._mask_id)
        return walks

    def _retire(self) -> list[SampleResult]:
        done = [s.sequence for s in self._active if s.sequence.end is not None]
        self._active = [s for s in self._active if s.sequence.end is None]
        now = self._clock()
        return [s.result(now=now, traced=self._settings.traced) for s in done]
