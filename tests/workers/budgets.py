"""Budgets on which no output may depend."""

import numpy as np

from workers.auto_budget import AutoBudget
from workers.budget import Ask, Drafted, FixedBudget, Root
from workers.costs import ForwardCost, ForwardSize, LinearCost
from workers.draft_plan import Costs


class Whimsical(FixedBudget):
    """Another budget every round, and another share of it taken."""

    def __init__(self) -> None:
        super().__init__(0)
        self._rng = np.random.default_rng(1)

    def ask(self, roots: list[Root], *, base: ForwardSize, num_sequences: int) -> list[Ask]:
        drawn = self._rng.integers(0, 9, (len(roots), 2)).tolist()
        return [Ask(drafts, depth, 0.01 * depth) for drafts, depth in drawn]

    def choose(
        self, drafted: list[Drafted], *, base: ForwardSize, num_sequences: int, seconds: float
    ) -> list[int]:
        return [int(self._rng.integers(0, len(d.full) + 1)) for d in drafted]


def eager(length: int) -> AutoBudget:
    """An automatic budget that believes forwards to be free."""
    free = ForwardCost(positions=np.array([1.0, 64.0]) * length, seconds=np.ones(2))
    nothing, host = (LinearCost(coefficients=np.zeros(n)) for n in (3, 4))
    return AutoBudget(costs=Costs(length=length, target=free, drafter=nothing, host=host))
