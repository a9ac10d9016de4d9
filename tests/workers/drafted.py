"""Roots and drafts that nobody drafted, for tests of the budget."""

import numpy as np
from numpy.typing import NDArray

from spot.drafters.base import Drafts
from workers.budget import Ask, Drafted, Root
from workers.costs import ForwardCost, ForwardSize, LinearCost
from workers.draft_plan import Costs

L = 32


def root(row: int = 0, *, masked: int = 20, pages: int = 2) -> Root:
    """A root of sample 0 of a row."""
    return Root((0, row, 0), pages * L, masked, masked)


def drafted(
    masses: NDArray[np.float64],
    *,
    row: int = 0,
    depths: list[int] | None = None,
    ask: Ask | None = None,
    full: bool = False,
) -> Drafted:
    """Drafts of these masses, one level each unless told otherwise."""
    num = len(masses)
    levels = np.arange(1, num + 1) if depths is None else np.array(depths, np.int64)
    states = np.zeros((num, L), np.int64)
    drafts = Drafts(states, masses.astype(np.float32), levels)
    return Drafted(root(row), ask or Ask(num + 1), drafts, np.full(num, full))


def costs(*, table: list[float], draft_s: float = 0.0, level_s: float = 0.0) -> Costs:
    """Forwards of 1, 2, 3, .. blocks take the table's seconds; the host takes nothing."""
    positions = np.arange(1.0, len(table) + 1.0) * L
    return Costs(
        length=L,
        target=ForwardCost(positions=positions, seconds=np.array(table)),
        drafter=LinearCost(coefficients=np.array([0.0, level_s, draft_s])),
        host=LinearCost(coefficients=np.zeros(4)),
    )


def blocks(num: float) -> ForwardSize:
    """A forward of so many blocks."""
    return ForwardSize(num * L)
