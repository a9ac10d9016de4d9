"""Calibration: from what was predicted and what came true to constants of a drafter.

Observations are pairs of a score and whether the thing came true. They are kept as counts on a fine
grid of scores, so that a long measurement can be stored, resumed and merged.

Legend: N distinct scores.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

GRID = 64  # scores are rounded to 1 / GRID; exact in fp64
RIDGE = 1e-3  # keeps the fit finite where one score separates everything
MAX_ITERATIONS = 100
BINS = 10
GAMMAS = (0.0, 0.02, 0.05, 0.1, 0.2)
GAMMA_BUDGETS = (8, 12, 20)
GAMMA_BAND = 0.03

Floats = NDArray[np.float64]


class Logistic(NamedTuple):
    """``P(true) = sigmoid(offset + slope * score)``."""

    offset: float
    slope: float

    def __call__(self, scores: ArrayLike) -> Floats:
        """Probabilities, elementwise."""
        logits = self.offset + self.slope * np.asarray(scores, np.float64)
        return np.asarray(np.exp(-np.logaddexp(0.0, -logits)))


def fit_logistic(scores: ArrayLike, counts: ArrayLike, hits: ArrayLike) -> Logistic:
    """Maximum likelihood by Newton's method, with a tiny ridge.

    Args:
        scores: [N].
        counts: observations at each score, [N].
        hits: of them, those that came true, [N].

    Complexity: linear in N, a dozen steps.

    Raises:
        ValueError: there is no observation.
    """
    x, n, k = (np.asarray(a, np.float64) for a in (scores, counts, hits))
    if not n.sum() > 0.0:
        raise ValueError("nothing was observed")
    design = np.stack([np.ones_like(x), x])
    ridge = RIDGE * np.eye(2)
    weights = np.zeros(2)
    loss = _loss(weights, design, n, k)
    for _ in range(MAX_ITERATIONS):
        p = Logistic(*weights)(x)
        gradient = design @ (k - n * p) - ridge @ weights
        curvature = (design * (n * p * (1.0 - p))) @ design.T + ridge
        step = np.linalg.solve(curvature, gradient)
        while (after := _loss(weights + step, design, n, k)) > loss and np.abs(step).max() > 1e-12:
            step = step / 2.0
        weights, loss = weights + step, after
        if np.abs(step).max() < 1e-9:
            break
    return Logistic(float(weights[0]), float(weights[1]))


def _loss(weights: Floats, design: Floats, counts: Floats, hits: Floats) -> float:
    logits = weights @ design
    fit = counts * np.logaddexp(0.0, logits) - hits * logits
    return float(fit.sum() + RIDGE / 2.0 * (weights**2).sum())


@dataclass(slots=True)
class Tally:
    """Counts of observations and of those that came true, by score on the grid."""

    cells: dict[int, list[int]] = field(default_factory=dict)  # grid index: [count, hits]

    def add(self, scores: ArrayLike, came_true: ArrayLike) -> None:
        """Count observations; both arrays have one shape."""
        cells = np.rint(np.asarray(scores, np.float64).ravel() * GRID).astype(np.int64)
        true = np.asarray(came_true, bool).ravel()
        places, index = np.unique(cells, return_inverse=True)
        counts = np.bincount(index, minlength=len(places))
        hits = np.bincount(index, weights=true, minlength=len(places))
        for place, count, hit in zip(places, counts, hits, strict=True):
            cell = self.cells.setdefault(int(place), [0, 0])
            cell[0] += int(count)
            cell[1] += int(hit)

    def merge(self, other: "Tally") -> None:
        """Add another tally's counts."""
        for place, (count, hits) in other.cells.items():
            cell = self.cells.setdefault(place, [0, 0])
            cell[0] += count
            cell[1] += hits

    def arrays(self) -> tuple[Floats, Floats, Floats]:
        """Scores, counts and hits in ascending score, [N] each."""
        rows = np.array([(i, *c) for i, c in sorted(self.cells.items())], np.float64).reshape(-1, 3)
        return rows[:, 0] / GRID, rows[:, 1], rows[:, 2]

    @property
    def total(self) -> int:
        """Observations."""
        return sum(count for count, _ in self.cells.values())

    @property
    def share(self) -> float:
        """Of them, the share that came true; 0 if there is none."""
        return sum(hits for _, hits in self.cells.values()) / max(self.total, 1)

    def fit(self) -> Logistic:
        """See ``fit_logistic``."""
        return fit_logistic(*self.arrays())

    def reliability(self, law: Logistic) -> "Reliability":
        """How well a law's probabilities fit."""
        scores, counts, hits = self.arrays()
        found = Reliability()
        found.add(law(scores), hits=hits, counts=counts)
        return found

    def to_json(self) -> dict[str, list[int]]:
        """For ``from_json``."""
        return {str(place): list(cell) for place, cell in sorted(self.cells.items())}

    @classmethod
    def from_json(cls, stored: Mapping[str, Iterable[int]]) -> Self:
        """What ``to_json`` made."""
        return cls({int(place): list(cell) for place, cell in stored.items()})


class Reliability:
    """Predicted probability against what came true, in ten bins of the prediction."""

    def __init__(self) -> None:
        self._counts, self._predicted, self._true = (np.zeros(BINS) for _ in range(3))

    def add(self, predicted: ArrayLike, *, hits: ArrayLike, counts: ArrayLike = 1.0) -> None:
        """Add observations.

        Args:
            predicted: probabilities, [N].
            hits: how many came true, [N].
            counts: of how many, [N] or one for all.
        """
        p = np.asarray(predicted, np.float64)
        n = np.broadcast_to(np.asarray(counts, np.float64), p.shape)
        bins = np.clip((p * BINS).astype(np.int64), 0, BINS - 1)
        np.add.at(self._counts, bins, n)
        np.add.at(self._predicted, bins, n * p)
        np.add.at(self._true, bins, np.asarray(hits, np.float64))

    def error(self) -> float:
        """Expected calibration error: the mean distance of the bins, by their counts."""
        total = max(float(self._counts.sum()), 1.0)
        return float(np.abs(self._predicted - self._true).sum() / total)

    def rows(self) -> list[dict[str, Any]]:
        """One row per bin; means are None where a bin is empty."""
        return [
            {
                "low": b / BINS,
                "high": (b + 1) / BINS,
                "count": int(n),
                "predicted": float(p / n) if n else None,
                "realised": float(k / n) if n else None,
            }
            for b, (n, p, k) in enumerate(
                zip(self._counts, self._predicted, self._true, strict=True)
            )
        ]


def choose_gamma(ratios: Mapping[float, float]) -> float:
    """The mass floor of a drafter (paper, appendix C): the best, or a smaller one as good.

    Args:
        ratios: throughput relative to draft-free decoding, mean over the budgets, by floor.

    Returns:
        The smallest floor within 3% of the best.
    """
    best = max(ratios.values())
    return min(gamma for gamma, ratio in ratios.items() if ratio >= best * (1.0 - GAMMA_BAND))
