"""The start-up probe of invariant numerics for targets that look both ways."""

import numpy as np
import torch
from torch import Tensor

from spot.targets.base import CanvasTarget, CanvasUnit, Opened, State
from workers.probe import COMPANY, refuse_company

NUM_BEFORE, NUM_BEHIND = 40, 24  # frozen positions, and not whole blocks


def probe_canvas_invariance(target: CanvasTarget) -> None:
    """Evaluate one state of an open block alone and among others, of its canvas and of another.

    Raises:
        NumericsError: a bit differs; the message names the remedy.
    """
    length, rng = target.spec.block_length, np.random.default_rng(0)

    def tokens(num: int) -> State:
        return rng.integers(0, target.spec.vocab_rows, num)

    def opened(num: int) -> Opened:
        canvas = tokens(num + length + NUM_BEHIND)
        return target.open(canvas, start=num, context="prefix+suffix")

    own, other = opened(NUM_BEFORE), opened(NUM_BEFORE // 3)
    unit = CanvasUnit(state=tokens(length), opened=own)
    alone = _logits(target, [unit])
    for size in COMPANY:
        place = size // 2
        others = [
            CanvasUnit(state=tokens(length), opened=own if i % 2 else other)
            for i in range(size - 1)
        ]
        units = [*others[:place], unit, *others[place:]]
        in_company = _logits(target, units)[place * length : (place + 1) * length]
        if not torch.equal(alone, in_company):
            refuse_company(size)


def _logits(target: CanvasTarget, units: list[CanvasUnit]) -> Tensor:
    return target.logits(target.hidden(units).flatten(0, 1))
