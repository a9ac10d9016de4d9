"""The batched decoder of LLaDA-8B and Dream-7B, tested equal to ``spot.canvas_decoder``.

A round: waiting samples enter free slots; those at the beginning of a block open it, one forward
over the whole canvas each; roots and drafts of all others are evaluated together; every sample
walks; finished ones leave. Nothing is shared between samples, and nothing outlives its block: these
targets have no exact pages.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from spot.conditionals import stale_of
from spot.drafters.base import Drafter, DraftRequest, Drafts, Stale, no_drafts
from spot.limits import Limits
from spot.released import check_schedule
from spot.targets.base import CacheContext, CanvasTarget, CanvasUnit, Conditionals
from spot.transition import Rule
from spot.verification import VerifierName, Walk, check_verifier
from workers.canvas_forwarding import CanvasForwarder
from workers.canvas_sample import CanvasSample
from workers.engine import Observer
from workers.rounds import Entry
from workers.samples import SampleRequest, SampleResult
from workers.walking import walk_entries


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasSettings:
    """What the engine needs to know beside its parts."""

    rule: Rule
    context: CacheContext
    batch: int
    budget: int = 0  # drafts per sequence and round
    traced: bool = False
    verifier: VerifierName = "coupled"

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
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises ValueError if target and rule do not go together."""
        check_schedule(settings.rule, length=target.spec.block_length)
        self._settings, self._limits, self._clock = settings, limits, clock
        self._drafter, self._observer = drafter, observer
        self._length, self._mask_id = target.spec.block_length, target.spec.mask_id
        self._forwarder = CanvasForwarder(target, context=settings.context)
        self._waiting: deque[tuple[float, SampleRequest]] = deque()
        self._active: list[CanvasSample] = []
        self._counts = {"drafts": 0, "accepted": 0, "openings": 0}

    def add(self, request: SampleRequest) -> None:
        """Queue one sample."""
        self._waiting.append((self._clock(), request))

    def has_work(self) -> bool:
        """Whether a sample waits or is being decoded."""
        return bool(self._waiting or self._active)

    def counters(self) -> dict[str, int]:
        """What has been spent since the engine was made."""
        forwarder = self._forwarder
        return self._counts | {
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
        self._admit()
        if not self._active:
            return []
        opening = [s for s in self._active if s.opened is None]
        going = [s for s in self._active if s.opened is not None]
        entries, units = self._pack(opening, going, self._draft(going))
        found = self._forwarder.run(opening, units)
        self._walk(opening + going, entries, found)
        self._counts["openings"] += len(opening)
        return self._retire()

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

    def _draft(self, going: list[CanvasSample]) -> list[Drafts]:
        """Drafted states of each sample, those that are not full."""
        if self._drafter is None or self._settings.budget == 0 or not going:
            return [no_drafts(self._length) for _ in going]
        proposed = self._drafter.propose([self._request(sample) for sample in going])
        return [p.pick((p.states == self._mask_id).any(-1)) for p in proposed]

    def _request(self, sample: CanvasSample) -> DraftRequest:
        sequence = sample.sequence
        assert sequence.stale is not None, "the block's opening left conditionals"
        return DraftRequest(
            root=sequence.root,
            stale=sequence.stale,
            start=sequence.start,
            key=sequence.request.key,
            budget=self._settings.budget,
            step=sequence.step,
        )

    def _pack(
        self, opening: list[CanvasSample], going: list[CanvasSample], drafts: list[Drafts]
    ) -> tuple[list[Entry], list[CanvasUnit]]:
        """Every sample's part of the round, and the states to evaluate beside the openings."""
        entries = [
            self._entry(sample, no_drafts(self._length), [index])
            for index, sample in enumerate(opening)
        ]
        units: list[CanvasUnit] = []
        for sample, drafted in zip(going, drafts, strict=True):
            assert sample.opened is not None, "the block is open"
            index_of: dict[bytes, int] = {}  # equal states are evaluated once
            indices = []
            for state in (sample.sequence.root, *drafted.states):
                name = state.tobytes()
                if name not in index_of:
                    index_of[name] = len(opening) + len(units)
                    units.append(CanvasUnit(state=state, opened=sample.opened))
                indices.append(index_of[name])
            sample.sequence.trajectory.cost.positions += len(index_of) * self._length
            entries.append(self._entry(sample, drafted, indices))
        return entries, units

    def _entry(self, sample: CanvasSample, drafts: Drafts, indices: list[int]) -> Entry:
        sequence = sample.sequence
        cost = sequence.trajectory.cost
        cost.nfe, cost.rounds = cost.nfe + 1, cost.rounds + 1
        cost.drafted += len(drafts.states)
        self._counts["drafts"] += len(drafts.states)
        return Entry(
            sequence=sequence,
            drafts=drafts,
            states=[sequence.root, *drafts.states],
            indices=indices,
            masses=[1.0, *drafts.masses.tolist()],
            steps=[sequence.step, *(sequence.step + drafts.depths).tolist()],
        )

    def _walk(self, samples: list[CanvasSample], entries: list[Entry], found: Conditionals) -> None:
        """Every sample follows its own path."""
        settings = self._settings
        walks = walk_entries(
            entries, found, rule=settings.rule, verifier=settings.verifier, mask_id=self._mask_id
        )
        ends = [entry.indices[made.last] for entry, made in zip(entries, walks, strict=True)]
        fresh = stale_of(found, ends)
        for sample, entry, made, stale in zip(samples, entries, walks, fresh, strict=True):
            self._move_on(sample, entry, made, stale)

    def _move_on(self, sample: CanvasSample, entry: Entry, made: Walk, fresh: Stale) -> None:
        if self._observer is not None:
            self._observer.walked(entry, made, fresh)
        sample.sequence.stale = fresh
        sample.move_on(made, mask_id=self._mask_id)
        self._counts["accepted"] += made.accepted

    def _retire(self) -> list[SampleResult]:
        done = [s.sequence for s in self._active if s.sequence.end is not None]
        self._active = [s for s in self._active if s.sequence.end is None]
        now = self._clock()
        return [s.result(now=now, traced=self._settings.traced) for s in done]
