"""Start-up measurements for the load-aware budget, on the machine at hand."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from spot.drafters.base import STALE_TOP, Drafter, DraftRequest, Stale
from spot.targets.base import (
    Canvas,
    CanvasTarget,
    CanvasUnit,
    MaskedHead,
    Opened,
    State,
    Target,
    Unit,
    conditionals_of,
    evaluate,
)
from workers.auto_budget import MAX_DRAFTS, AutoBudget
from workers.costs import ForwardCost, LinearCost
from workers.draft_plan import Costs

UNITS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
WIDE = 16  # units of the forwards that tell what pairs and rows cost
PAGES = 8  # blocks behind which they stand
REPEATS = 5
ENOUGH_S = 5.0  # larger forwards are not measured once so much time has gone
LEAST = 1e-9
# Seconds of a round, a sequence, a round that drafts, and a draft, until some are seen.
UNKNOWN_HOST = (3e-4, 2e-4, 1e-3, 1e-4)

Clock = Callable[[], float]


class Forward(Protocol):
    """A forward of equal units whose seconds are measured."""

    def __call__(self, num: int, *, masked: int, behind: int = 0) -> object:
        """Evaluate ``num`` blocks, ``masked`` positions masked, behind so many other blocks."""


def profile(target: Target, drafter: Drafter, *, clock: Clock = time.perf_counter) -> AutoBudget:
    """A load-aware budget for a target and its drafter."""
    return _budget(target, drafter, profile_forward(target, clock=clock), clock=clock)


def profile_canvas(
    target: CanvasTarget, drafter: Drafter, *, clock: Clock = time.perf_counter
) -> AutoBudget:
    """The same for a target that looks both ways."""
    return _budget(target, drafter, profile_canvas_forward(target, clock=clock), clock=clock)


def _budget(target: MaskedHead, drafter: Drafter, cost: ForwardCost, *, clock: Clock) -> AutoBudget:
    costs = Costs(
        length=target.spec.block_length,
        target=cost,
        drafter=profile_drafter(target, drafter, clock=clock),
        host=LinearCost(coefficients=np.array(UNKNOWN_HOST)),
    )
    return AutoBudget(costs=costs)


def profile_forward(target: Target, *, clock: Clock = time.perf_counter) -> ForwardCost:
    """Seconds of forwards by number of blocks; and what a pair and a masked row add."""
    length, pages = target.spec.block_length, target.new_pages(PAGES)

    def forward(num: int, *, masked: int, behind: int = 0) -> None:
        state = _state(target, masked)
        unit = Unit(state=state, start=behind * length, pages=tuple(range(behind)))
        evaluate(target, [unit] * num, pages, num_states=num)

    return _taken_apart(forward, length=length, clock=clock)


def profile_canvas_forward(
    target: CanvasTarget, *, clock: Clock = time.perf_counter
) -> ForwardCost:
    """Seconds of forwards of block states; openings are forwards of their own."""
    length = target.spec.block_length

    def opened(behind: int) -> Opened:
        tokens = np.zeros((behind + 1) * length, np.int64)
        return target.open([Canvas(tokens, behind * length)], context="prefix")[0]

    canvases = {behind: opened(behind) for behind in (0, PAGES)}

    def forward(num: int, *, masked: int, behind: int = 0) -> None:
        unit = CanvasUnit(state=_state(target, masked), opened=canvases[behind])
        conditionals_of(target, target.hidden([unit] * num), np.stack([unit.state] * num))

    return _taken_apart(forward, length=length, clock=clock)


def _state(target: MaskedHead, masked: int) -> State:
    state = np.zeros(target.spec.block_length, np.int64)
    state[:masked] = target.spec.mask_id
    return state


def _taken_apart(forward: Forward, *, length: int, clock: Clock) -> ForwardCost:
    began = clock()

    def seconds(num: int, *, masked: int, behind: int = 0) -> float:
        return _fastest(lambda: forward(num, masked=masked, behind=behind), clock=clock)

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
    target: MaskedHead, drafter: Drafter, *, clock: Clock = time.perf_counter
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


def _request(target: MaskedHead) -> DraftRequest:
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
