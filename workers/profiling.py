"""Start-up measurements for the load-aware budget, on the machine at hand."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from spot.drafters.base import STALE_TOP, Drafter, DraftRequest, Stale
from spot.targets.base import Target, Unit, evaluate
from workers.auto_budget import MAX_DRAFTS, AutoBudget
from workers.costs import ForwardCost, LinearCost
from workers.draft_plan import Costs

UNITS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
WIDE = 16  # units of the forwards that tell what pairs and rows cost
PAGES = 8  # behind which they stand
REPEATS = 5
ENOUGH_S = 5.0  # larger forwards are not measured once so much time has gone
LEAST = 1e-9
# Seconds of a round, a sequence, a round that drafts, and a draft, until some are seen.
UNKNOWN_HOST = (3e-4, 2e-4, 1e-3, 1e-4)

Clock = Callable[[], float]


def profile(target: Target, drafter: Drafter, *, clock: Clock = time.perf_counter) -> AutoBudget:
    """A load-aware budget for a target and its drafter."""
    costs = Costs(
        length=target.spec.block_length,
        target=profile_forward(target, clock=clock),
        drafter=profile_drafter(target, drafter, clock=clock),
        host=LinearCost(coefficients=np.array(UNKNOWN_HOST)),
    )
    return AutoBudget(costs=costs)


def profile_forward(target: Target, *, clock: Clock = time.perf_counter) -> ForwardCost:
    """Seconds of forwards by number of blocks; and what a pair and a masked row add."""
    length, began = target.spec.block_length, clock()
    pages = target.new_pages(PAGES)

    def seconds(num: int, *, masked: int, behind: int = 0) -> float:
        state = np.zeros(length, np.int64)
        state[:masked] = target.spec.mask_id
        unit = Unit(state=state, start=behind * length, pages=tuple(range(behind)))
        return _fastest(lambda: evaluate(target, [unit] * num, pages, num_states=num), clock=clock)

    base: list[float] = []
    for num in UNITS:
        if clock() - began < ENOUGH_S or len(base) < 2:
            base.append(seconds(num, masked=1))
    plain = seconds(WIDE, masked=1)
    row_s = (seconds(WIDE, masked=length) - plain) / (WIDE * (length - 1))
    pair_s = (seconds(WIDE, masked=1, behind=PAGES) - plain) / (WIDE * PAGES * length * length)
    row_s, pair_s = max(row_s, 0.0), max(pair_s, 0.0)
    # whatever disturbed a forward, it takes no longer than a larger one
    least = np.minimum.accumulate(base[::-1])[::-1]
    units = np.array(UNITS[: len(base)], np.float64)
    inherent = units * (row_s + pair_s * length * length)
    return ForwardCost(
        positions=units * length,
        seconds=np.maximum(least - inherent, LEAST),
        pair_s=pair_s,
        row_s=row_s,
    )


def profile_drafter(
    target: Target, drafter: Drafter, *, clock: Clock = time.perf_counter
) -> LinearCost:
    """Seconds of a call, of a level of its trees, and of a draft."""
    request = _request(target)

    def seconds(num: int, *, depth: int) -> tuple[float, int]:
        asked = [_at_depth(request, depth)] * num
        drafts = sum(len(d.states) for d in drafter.propose(asked))
        return _fastest(lambda: drafter.propose(asked), clock=clock), drafts

    (flat, _), (deep, few), (wide, many) = (
        seconds(1, depth=1),
        seconds(1, depth=2),
        seconds(WIDE, depth=2),
    )
    draft = max((wide - deep) / max(many - few, 1), LEAST)
    # the second level looks behind all drafts of the first; neither a level nor a call is free
    level = max(deep - flat - draft * few, flat / 4)
    call = max(flat - level, flat / 4)
    return LinearCost(coefficients=np.array([call, level, draft]))


def _fastest(action: Callable[[], object], *, clock: Clock) -> float:
    times = []
    for _ in range(REPEATS):
        began = clock()
        action()
        times.append(clock() - began)
    return min(times)


def _request(target: Target) -> DraftRequest:
    """An open block of which nothing is known."""
    length = target.spec.block_length
    stale = Stale(
        log_probs=np.full((length, STALE_TOP), -3.5, np.float16),
        doubts=np.full(length, 1.25, np.float16),
        tokens=np.tile(np.arange(STALE_TOP), (length, 1)),
        masked=np.ones(length, bool),
    )
    root = np.full(length, target.spec.mask_id, np.int64)
    return DraftRequest(root=root, stale=stale, start=0, key=0, budget=MAX_DRAFTS)


def _at_depth(request: DraftRequest, depth: int) -> DraftRequest:
    return replace(request, depth=depth)
