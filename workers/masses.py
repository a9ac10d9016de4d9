"""What drafts are worth: how often states of a mass are reached, and which masses roots have.

Drafters predict masses; realised acceptance says what they are worth. A *profile* holds, by how
many positions of a block are masked, the expected worth of the k-th heaviest draft at each depth.
A sequence's own recent drafts lean it up or down, and a *discount* takes off what did not come true
at a class of loads.

Legend: B bins of masked positions, D depths, K ranks, N sequences, M drafts.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spot.drafters.base import Drafts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NUM_BINS, NUM_DEPTHS, NUM_RANKS = 7, 6, 8
PROFILE_MEMORY = 0.05
CHILD = 0.8  # of a draft's worth that its best child has, where nobody looked
TRUST = 20.0  # drafts' worth of belief in the drafter's own masses
FORGET = 0.998  # per round with drafts
DISCOUNT_MEMORY = 0.03  # per round with drafts
PATIENCE = 3.0  # accepted drafts' worth of belief that drafts come true
EDGES = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


@dataclass(slots=True)
class Calibration:
    """Worth of a mass: a rising curve through realised acceptance, bin by bin."""

    masses: Floats = field(init=False)  # [bins], sum of predicted masses, belief included
    accepted: Floats = field(init=False)  # [bins]
    counts: Floats = field(init=False)  # [bins]
    curve: tuple[Floats, Floats] = field(init=False)  # predicted and realised, both rising

    def __post_init__(self) -> None:
        centres = (EDGES[:-1] + EDGES[1:]) / 2
        self.masses, self.accepted = centres * TRUST, centres * TRUST
        self.counts = np.full(len(centres), TRUST)
        self._draw()

    def __call__(self, masses: Floats) -> Floats:
        """Worth of each mass; keeps their order."""
        return np.interp(masses, *self.curve)

    def inverse(self, worth: float) -> float:
        """The mass that is worth so much."""
        predicted, realised = self.curve
        return float(np.interp(worth, realised, predicted))

    def observe(self, masses: Floats, accepted: Flags) -> None:
        """Evaluated drafts with their predicted masses, and whether the walk passed them."""
        if not len(masses):
            return
        which = np.clip(np.searchsorted(EDGES, masses, side="right") - 1, 0, len(EDGES) - 2)
        for total, seen in (
            (self.masses, masses),
            (self.accepted, accepted.astype(np.float64)),
            (self.counts, np.ones(len(masses))),
        ):
            total *= FORGET
            total += np.bincount(which, weights=seen, minlength=len(total))
        self._draw()

    def _draw(self) -> None:
        realised = rising(self.accepted / self.counts, self.counts)
        # tiny slopes let the curve be inverted
        slopes = 1e-9 * np.arange(len(realised) + 1)
        self.curve = (
            np.concatenate([[0.0], self.masses / self.counts]),
            np.concatenate([[0.0], realised]) + slopes,
        )


@dataclass(slots=True)
class Discount:
    """How much of their worth drafts of one class of loads really had.

    The calibration is of all drafts; a stream's tail holds the samples that are the hardest to
    draft for, and most drafts are of others.
    """

    expected: float = PATIENCE
    accepted: float = PATIENCE

    @property
    def factor(self) -> float:
        """What to multiply worths with; at most 1."""
        return min(1.0, self.accepted / self.expected)

    def observe(self, worth: Floats, accepted: Flags) -> None:
        """Evaluated drafts of a round: what they were held to be worth, and what became of them."""
        if not len(worth):
            return
        self.forget(DISCOUNT_MEMORY)
        self.expected += float(worth.sum())
        self.accepted += float(accepted.sum())

    def forget(self, share: float) -> None:
        """Go back to the belief by so much of the way."""
        self.expected += share * (PATIENCE - self.expected)
        self.accepted += share * (PATIENCE - self.accepted)


def rising(values: Floats, weights: Floats) -> Floats:
    """The rising sequence nearest to the values by weighted squares; neighbours are pooled."""
    pools: list[tuple[float, float, int]] = []  # weighted mean, weight, members
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, heavy, num = value, weight, 1
        while pools and pools[-1][0] >= mean:
            before, weight_before, num_before = pools.pop()
            mean = (mean * heavy + before * weight_before) / (heavy + weight_before)
            heavy, num = heavy + weight_before, num + num_before
        pools.append((mean, heavy, num))
    return np.repeat([mean for mean, _, _ in pools], [num for _, _, num in pools])


def _prior() -> Floats:
    """Before anything is known: three in five for the best chain, a third for each runner-up."""
    depth, rank = np.arange(1.0, NUM_DEPTHS + 1)[:, None], np.arange(NUM_RANKS)[None]
    return np.broadcast_to(0.6**depth * 0.35**rank, (NUM_BINS, NUM_DEPTHS, NUM_RANKS)).copy()


def bin_of(masked: int) -> int:
    """Which bin a number of masked positions falls into: 1, 2-3, 4-7, and so on."""
    return min(max(masked.bit_length() - 1, 0), NUM_BINS - 1)


@dataclass(slots=True)
class MassProfile:
    """Expected worth of a root's drafts."""

    worth: Floats = field(default_factory=_prior)  # [B, D, K]
    seen: Floats = field(default_factory=lambda: np.full(NUM_BINS, 1.0))  # [B]

    def expect(self, masked: list[int], leans: Floats) -> Floats:
        """Worth of the drafts of N roots by depth and rank; [N, D, K], none above its parent."""
        worth = np.minimum.accumulate(self.worth, axis=1)[[bin_of(m) for m in masked]]
        return np.minimum(1.0, leans[:, None, None] * worth)

    def observe(self, masked: int, found: Floats, *, bound: float) -> float:
        """One root's drafts by depth and rank; see ``by_depth``.

        Args:
            masked: positions of the block.
            found: [D, K].
            bound: what a draft that was looked for and not kept is worth at most.

        Returns:
            Their worth against what was expected of them.
        """
        which = bin_of(masked)
        expected = self.worth[which]
        found = np.where(np.isinf(found), np.minimum(expected, bound / 2), found)
        looked = ~np.isnan(found)
        ratio = float(found[looked].sum() / max(expected[looked].sum(), 1e-9))
        self.seen[which] += 1
        rate = max(PROFILE_MEMORY, 1.0 / self.seen[which])
        expected[looked] += rate * (found[looked] - expected[looked])
        return ratio


def levels_of(drafts: Drafts, *, depth: int, deeper: float) -> int:
    """Levels that a tree was grown: behind the last one nothing was worth looking."""
    rich = drafts.depths[drafts.masses >= deeper]
    return min(depth, int(rich.max(initial=0)) + 1)


def by_depth(drafts: Drafts, worth: Floats, *, levels: int, depth: int) -> Floats:
    """Worth of one root's drafts by depth and rank, [D, K].

    Minus infinity where a level was grown and nothing was kept; a guess, from the level before,
    where growing another one did not pay; NaN beyond the depth that was asked for.
    """
    table = np.full((NUM_DEPTHS, NUM_RANKS), np.nan)
    for level in range(min(levels, NUM_DEPTHS)):
        found = worth[drafts.depths == level + 1][:NUM_RANKS]
        table[level], table[level, : len(found)] = -np.inf, found
    for level in range(levels, min(depth, NUM_DEPTHS)):
        table[level] = CHILD * np.maximum(table[level - 1], 0.0)
    return table
