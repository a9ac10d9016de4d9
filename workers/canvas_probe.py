"""The start-up probe of invariant numerics for targets that look both ways."""

import numpy as np
import torch
from torch import Tensor

from spot.targets.base import Canvas, CanvasTarget, CanvasUnit, State
from workers.probe import COMPANY, refuse_company

NUM_BEFORE, NUM_BEHIND = 40, 24  # frozen positions, and not whole blocks


def probe_canvas_invariance(target: CanvasTarget) -> None:
    """Open a canvas, and evaluate a state of its block, alone and among others.

    Raises:
        NumericsError: a bit differs; the message names the remedy.
    """
    length, rng = target.spec.block_length, np.random.default_rng(0)

    def tokens(num: int) -> State:
        return rng.integers(0, target.spec.vocab_rows, num)

    canvases = [
        Canvas(tokens(num + length + NUM_BEHIND), num) for num in (NUM_BEFORE, NUM_BEFORE // 3)
    ]
    (first,) = target.open(canvases[:1], context="prefix+suffix")
    state = tokens(length)
    alone = _logits(target, [CanvasUnit(state=state, opened=first)])
    own, other = target.open(canvases, context="prefix+suffix")
    unit = CanvasUnit(state=state, opened=own)
    if not torch.equal(target.logits(first.hidden), target.logits(own.hidden)):
        refuse_company(len(canvases))
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
