"""Start-up measurements for the load-aware budget, on the machine at hand."""

import time

import numpy as np

from spot.drafters.base import STALE_TOP, Drafter, DraftRequest, Stale
from spot.targets.base import Target, Unit, evaluate
from workers.budget import MAX_DRAFTS, ForwardCost

UNITS = (1, 2, 4, 8, 16, 32, 64)
REPEATS = 3


def profile_forward(target: Target) -> ForwardCost:
    """Seconds of one forward by number of open blocks, fastest of a few."""
    pages = target.new_pages(1)
    state = np.full(target.spec.block_length, target.spec.mask_id, np.int64)
    unit = Unit(state=state, start=0, pages=())
    seconds = []
    for num in UNITS:
        times = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            evaluate(target, [unit] * num, pages, num_states=num)
            times.append(time.perf_counter() - began)
        seconds.append(min(times))
    return ForwardCost(np.array(UNITS, float), np.array(seconds))


def profile_drafter(target: Target, drafter: Drafter) -> float:
    """Seconds of one drafting call for one sequence."""
    length = target.spec.block_length
    stale = Stale(
        log_probs=np.full((length, STALE_TOP), -3.5, np.float16),
        doubts=np.full(length, 1.25, np.float16),
        tokens=np.tile(np.arange(STALE_TOP), (length, 1)),
        masked=np.ones(length, bool),
    )
    root = np.full(length, target.spec.mask_id, np.int64)
    request = DraftRequest(root=root, stale=stale, start=0, key=0, budget=MAX_DRAFTS)
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        drafter.propose([request])
        times.append(time.perf_counter() - began)
    return min(times)
