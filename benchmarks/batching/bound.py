"""What trees of a fixed size could gain at best, one strict sample at a time.

``max gain(D) * t(1) / (t(1 + D) + t_draft(D))`` over budgets and depths: the gain is how many times
fewer forwards a tree of that size needs, counted on recorded forwards; forwards and the drafter's
calls are timed on this machine. Host time is left out of both sides.
"""

from itertools import product

from benchmarks.batching.cells import Cell
from benchmarks.batching.runs import Bench, drafter_for, fixed
from benchmarks.batching.simulate import replayed_target
from benchmarks.workload import Workload
from spot.drafters.base import ANY_DEPTH
from workers.budget import Ask, FixedBudget, Root
from workers.costs import ForwardCost, ForwardSize, unit_size
from workers.profiling import profile_forward

BUDGETS = (1, 2, 3, 4, 6, 8)
DEPTHS = (1, 2, 3, ANY_DEPTH)
PAGES, MASKED = 2, 16  # of a typical root


class FixedTree(FixedBudget):
    """Always the same budget and depth."""

    def __init__(self, budget: int, depth: int) -> None:
        super().__init__(budget)
        self._ask = Ask(budget, depth=depth)

    def ask(self, roots: list[Root], *, base: ForwardSize, num_sequences: int) -> list[Ask]:
        """The same for every root."""
        return [self._ask] * len(roots)


def bound_at_concurrency_one(bench: Bench, workload: Workload, cell: Cell) -> float:
    """The bound; at least 1, for drafting nothing."""
    drafter = drafter_for("d8", cell.transition, workload, mask_id=bench.target.spec.mask_id)
    cost = profile_forward(bench.target, clock=bench.clock)
    replayed = Bench(
        target=replayed_target(bench, cell), requests=bench.requests, clock=bench.clock
    )
    free = replayed.run(cell, drafter=None, budget=fixed("draft_free")).counters["forwards"]
    best = 1.0
    for budget, depth in product(BUDGETS, DEPTHS):
        run = replayed.run(cell, drafter=drafter, budget=FixedTree(budget, depth))
        forwards = run.counters["forwards"]
        drafts = run.counters["drafts"] / forwards
        draft_s = run.counters["drafter_us"] / 1e6 / forwards
        length = bench.target.spec.block_length
        seconds = _seconds(cost, 1.0 + drafts, length=length) + draft_s
        best = max(best, free / forwards * _seconds(cost, 1.0, length=length) / seconds)
    return best


def _seconds(cost: ForwardCost, num: float, *, length: int) -> float:
    """Of a forward of so many typical blocks."""
    unit = unit_size(length=length, context=PAGES * length, masked=MASKED)
    return float(cost(ForwardSize(*(num * part for part in unit))))
