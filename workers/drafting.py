"""Drafting inside the engine: whom the policy lets draft next round, and the drafter's call.

The policy is asked when a round ends, so that stale conditionals are kept only for the roots that
will use them; it chooses among the drafts once they are there.
"""

from collections.abc import Callable

import numpy as np

from spot.conditionals import stale_of
from spot.drafters.base import Drafter, DraftRequest, Drafts, Stale, no_drafts
from spot.targets.base import Conditionals
from spot.verification import Walk
from workers.budget import NOTHING, Ask, BudgetPolicy, Drafted, Root, Spent
from workers.costs import ForwardSize, unit_size
from workers.rounds import Entry, Round
from workers.sequence import Sequence


def name_of(sequence: Sequence) -> tuple[int, int, int]:
    """What a policy calls a sample."""
    request = sequence.request
    return request.shard, request.row, request.sample


def masked_behind(walks: list[Walk], *, mask_id: int) -> list[int]:
    """Positions of its block that each sample has still to fill; 0 where its walk has left it."""
    if not walks:
        return []
    counts = (np.array([made.root for made in walks]) == mask_id).sum(-1).tolist()
    return [n if made.end is None else 0 for made, n in zip(walks, counts, strict=True)]


def fresh_of(
    found: Conditionals, entries: list[Entry], walks: list[Walk], *, wanted: list[bool]
) -> list[Stale | None]:
    """Conditionals of the samples' last accepted states, where they are wanted."""
    ends = zip(entries, walks, wanted, strict=True)
    kept = iter(stale_of(found, [e.indices[w.last] for e, w, want in ends if want]))
    return [next(kept) if want else None for want in wanted]


def size_of(round_: Round, *, length: int, num_rows: int) -> ForwardSize:
    """What a packed round computes."""
    units = (*round_.states, *round_.stores, *round_.padding)
    pages = sum(len(unit.pages) + 1 for unit in units)
    return ForwardSize(length * len(units), length * length * pages, num_rows)


class Drafting:
    """The drafter and the policy over it; without a drafter nothing is ever drafted."""

    def __init__(
        self,
        drafter: Drafter | None,
        budget: BudgetPolicy,
        *,
        length: int,
        mask_id: int,
        full_states: bool,
        clock: Callable[[], float],
    ) -> None:
        """``full_states`` says whether a draft that fills its block is of use."""
        self._drafter, self._budget = drafter, budget
        self._length, self._mask_id = length, mask_id
        self._full_states, self._clock = full_states, clock
        self.asked = 0  # the most drafts that a sequence was asked for in this round
        self.seconds = 0.0  # of the drafter, in this round

    def _root_of(self, entry: Entry, made: Walk, *, masked: int) -> Root:
        """The next root of a sample that goes on inside a block."""
        crossed = 0 if made.crossed is None else self._length
        return self._root(entry.sequence, masked, context=entry.sequence.context + crossed)

    def _present(self, sequence: Sequence) -> Root:
        """The root of this round."""
        masked = int((sequence.root == self._mask_id).sum())
        return self._root(sequence, masked, context=sequence.context)

    def _root(self, sequence: Sequence, masked: int, *, context: int) -> Root:
        room = masked if self._full_states else masked - 1
        return Root(name_of(sequence), context, masked, room)

    def ask(
        self,
        entries: list[Entry],
        walks: list[Walk],
        *,
        masked: list[int],
        num_openings: int,
        num_stores: int,
    ) -> list[Ask]:
        """What each sample may draft next round, beside so many openings and stores.

        Nothing where ``masked``, the positions that it has still to fill in its block, is 0.
        """
        still = [n for n in masked if n]
        if (
            self._drafter is None
            or not still
            or self._budget.is_shut(still, num_sequences=len(still) + num_openings)
        ):
            return [NOTHING] * len(entries)
        roots = [
            self._root_of(entry, made, masked=n)
            for entry, made, n in zip(entries, walks, masked, strict=True)
            if n
        ]
        asks = iter(self._ask(roots, num_openings=num_openings, num_stores=num_stores))
        return [next(asks) if n else NOTHING for n in masked]

    def _ask(self, roots: list[Root], *, num_openings: int, num_stores: int) -> list[Ask]:
        length = self._length
        opening = unit_size(length=length, context=0, masked=length)
        store = unit_size(length=length, context=0, masked=0)
        base = self._sum(roots)
        for unit, num in ((opening, num_openings), (store, num_stores)):
            base = base.plus(ForwardSize(*(num * u for u in unit)))
        return self._budget.ask(roots, base=base, num_sequences=len(roots) + num_openings)

    def _sum(self, roots: list[Root]) -> ForwardSize:
        """The size of a forward of roots alone."""
        context, positions = sum(r.context for r in roots), self._length * len(roots)
        return ForwardSize(
            positions, self._length * (positions + context), sum(r.masked for r in roots)
        )

    def observe(self, spent: Spent) -> None:
        """A round is over."""
        self._budget.observe(spent)

    def draft(self, able: list[Sequence], *, num_stores: int, room: int) -> list[Drafts]:
        """The drafted states of each sequence of a round.

        Args:
            able: the sequences whose roots are evaluated.
            num_stores: blocks that are stored beside them.
            room: at most so many drafts in all.
        """
        drafts = [no_drafts(self._length) for _ in able]
        self.asked, self.seconds = 0, 0.0
        willing = [i for i, s in enumerate(able) if s.stale is not None and s.ask.drafts > 0]
        if self._drafter is None or not willing or room < len(willing):
            return drafts
        each = room // len(willing)
        asks = [a._replace(drafts=min(a.drafts, each)) for a in (able[i].ask for i in willing)]
        self.asked = max(a.drafts for a in asks)
        began = self._clock()
        requests = [self._request(able[i], a) for i, a in zip(willing, asks, strict=True)]
        proposed = self._drafter.propose(requests)
        self.seconds = self._clock() - began
        drafted = [
            self._drafted(able[i], a, p) for i, a, p in zip(willing, asks, proposed, strict=True)
        ]
        for i, each_drafted, count in zip(
            willing, drafted, self._choose(able, drafted, num_stores), strict=True
        ):
            chosen = each_drafted.drafts
            drafts[i] = chosen.pick(slice(count))
        return drafts

    def _choose(self, able: list[Sequence], drafted: list[Drafted], num_stores: int) -> list[int]:
        base = self._sum([self._present(s) for s in able])
        store = unit_size(length=self._length, context=0, masked=0)
        base = base.plus(ForwardSize(*(num_stores * u for u in store)))
        return self._budget.choose(
            drafted, base=base, num_sequences=len(able), seconds=self.seconds
        )

    def _drafted(self, sequence: Sequence, ask: Ask, drafts: Drafts) -> Drafted:
        root = self._present(sequence)
        full = ~(drafts.states == self._mask_id).any(-1)
        if not self._full_states:
            drafts, full = drafts.pick(~full), full[~full]
        return Drafted(root, ask, drafts, full)

    def _request(self, sequence: Sequence, ask: Ask) -> DraftRequest:
        assert sequence.stale is not None, "no stale conditionals when a block opens"
        return DraftRequest(
            root=sequence.root,
            stale=sequence.stale,
            start=sequence.start,
            key=sequence.request.key,
            budget=ask.drafts,
            step=sequence.step,
            full_states=self._full_states,
            depth=ask.depth,
            floor=ask.floor,
            deeper=ask.deeper,
        )
