import numpy as np

from spot.drafters.base import ANY_DEPTH
from tests.workers.drafted import drafted, root
from workers.budget import FixedBudget
from workers.costs import ForwardSize


def test_a_fixed_budget_asks_and_takes_the_same_whatever_the_load() -> None:
    budget = FixedBudget(7)
    for positions in (32.0, 3200.0):
        asks = budget.ask([root()] * 3, base=ForwardSize(positions), num_sequences=9)
        assert [(a.drafts, a.depth, a.floor, a.deeper) for a in asks] == [(7, ANY_DEPTH, 0, 0)] * 3
    found = [drafted(np.ones(7)), drafted(np.full(3, 0.1))]
    chosen = budget.choose(found, base=ForwardSize(64.0), num_sequences=2, seconds=1.0)
    assert chosen == [7, 3]
