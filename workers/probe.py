"""The start-up probe of invariant numerics: states alone and in company, compared bit by bit.

A device whose products depend on how many rows they have cannot keep the promise that company never
changes an output; such a worker refuses the mode instead.
"""

from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from spot.attention import KVPages
from spot.targets.base import State, Target, Unit
from workers.errors import NumericsError

COMPANY = (2, 3, 9, 21, 32)


def probe_invariance(target: Target) -> None:
    """Evaluate one state alone and among others, on an empty prefix and behind two pages.

    Raises:
        NumericsError: a bit differs; the message names the remedy.
    """
    length, rng = target.spec.block_length, np.random.default_rng(0)
    pages = target.new_pages(2)

    def block() -> State:
        return rng.integers(0, target.spec.vocab_rows, length)

    first, second, state = block(), block(), block()
    stores = [
        Unit(state=first, start=0, pages=(), write=0),
        Unit(state=second, start=length, pages=(0,), write=1),
    ]
    target.hidden(stores, pages)
    for prefix in ((), (0, 1)):
        unit = Unit(state=state, start=len(prefix) * length, pages=prefix)
        alone = _logits(target, [unit], pages)
        for size in COMPANY:
            place = size // 2
            others = [Unit(state=block(), start=0, pages=()) for _ in range(size - 1)]
            units = [*others[:place], unit, *others[place:]]
            in_company = _logits(target, units, pages)[place * length : (place + 1) * length]
            if not torch.equal(alone, in_company):
                refuse_company(size)


def refuse_company(size: int) -> NoReturn:
    """Say that a block has other bits in company, and what to do."""
    raise NumericsError(
        f"this device gives other bits for a block among {size} than alone, so decode.numerics: "
        "invariant cannot be kept here; set decode.numerics: fast (outputs may then depend on "
        "batching) or use another device"
    )


def _logits(target: Target, units: list[Unit], pages: KVPages) -> Tensor:
    return target.logits(target.hidden(units, pages).flatten(0, 1))
