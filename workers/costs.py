"""Seconds as functions of counts: profiled at start-up, refreshed by every observation.

A forward costs what its positions cost (a measured table: steps and slopes differ between machines
and sizes), and in proportion to its attention pairs and masked rows. Drafting and the host's own
work are linear in a few counts.

Legend: K knots of the table, F counts of a linear cost.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Number = Floats | float

MEMORY = 0.1  # weight of the newest observation in running means
SHAPE_MEMORY = 0.02  # the same for the table's shape, which changes more slowly than its scale
OUTLIER = 2.0  # an observation counts at most as this multiple of what was expected


class ForwardSize(NamedTuple):
    """What a target forward computes; numbers, or arrays of as many forwards."""

    positions: Number = 0.0
    pairs: Number = 0.0  # (query, key) pairs of attention
    rows: Number = 0.0  # masked positions, whose logits are computed

    def plus(self, other: "ForwardSize") -> "ForwardSize":
        """Both in one forward."""
        return ForwardSize(*(a + b for a, b in zip(self, other, strict=True)))


def unit_size(*, length: int, context: int, masked: int) -> ForwardSize:
    """One block that attends to ``context`` positions beside its own, ``masked`` of them masked."""
    return ForwardSize(float(length), float(length * (context + length)), float(masked))


@dataclass(slots=True, kw_only=True)
class ForwardCost:
    """Seconds of a target forward by its size."""

    positions: Floats  # [K], ascending
    seconds: Floats  # [K], of so many positions, without pairs and rows
    pair_s: float = 0.0
    row_s: float = 0.0
    scale: float = 1.0  # the machine's present speed against the profile
    bend: Floats = field(init=False)  # [K], what was learnt about the shape of the table

    def __post_init__(self) -> None:
        self.bend = np.ones(len(self.positions))

    def __call__(self, size: ForwardSize) -> Floats:
        """Interpolated between the knots; beyond the last one, along its slope."""
        knots, seconds = self.positions, self.seconds * self.bend
        inside = np.interp(size.positions, knots, seconds)
        beyond = np.maximum(np.asarray(size.positions) - knots[-1], 0.0)
        linear = self.pair_s * np.asarray(size.pairs) + self.row_s * np.asarray(size.rows)
        return np.asarray(self.scale * (inside + self._slope() * beyond + linear))

    def _slope(self) -> float:
        """Seconds per position beyond the table."""
        if len(self.positions) == 1:
            return float(self.seconds[-1] / self.positions[-1])
        (near, far), (low, high) = self.positions[-2:], self.seconds[-2:]
        return max(0.0, float((high - low) / (far - near)))

    def observe(self, size: ForwardSize, seconds: float) -> None:
        """Follow the machine: its speed at once, the shape near this size slowly."""
        ratio = min(seconds / max(float(self(size)), 1e-9), OUTLIER)
        self.scale *= 1.0 + MEMORY * (ratio - 1.0)
        place = float(np.interp(size.positions, self.positions, np.arange(len(self.positions))))
        near = np.maximum(0.0, 1.0 - np.abs(np.arange(len(self.positions)) - place))
        self.bend *= 1.0 + SHAPE_MEMORY * (ratio - 1.0) * near
        self.bend /= self.bend.mean()


@dataclass(slots=True, kw_only=True)
class LinearCost:
    """Seconds in proportion to a few counts, each coefficient at least zero.

    Refreshed by normalised least mean squares: an error is shared out over the coefficients by how
    much each contributed, in units of its first estimate (or of a share of the largest one).
    """

    coefficients: Floats  # [F]
    units: Floats = field(init=False)  # [F], what counts as a large step

    def __post_init__(self) -> None:
        self.coefficients = np.asarray(self.coefficients, np.float64).copy()
        self.units = np.maximum(self.coefficients, max(self.coefficients.max() / 20, 1e-9))

    def __call__(self, *counts: Number | Counts) -> Floats:
        """Seconds of these counts; arrays are broadcast against each other."""
        total = np.zeros(())
        for coefficient, count in zip(self.coefficients, counts, strict=True):
            total = total + coefficient * np.asarray(count)
        return total

    def observe(self, *counts: float, seconds: float) -> None:
        """Move towards what was seen."""
        expected = float(self(*counts))
        error = min(seconds, OUTLIER * max(expected, 1e-9)) - expected
        weights = np.asarray(counts, np.float64) * self.units
        step = weights / max(float(weights @ weights), 1e-18) * self.units
        self.coefficients = np.maximum(0.0, self.coefficients + MEMORY * error * step)
