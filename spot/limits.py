"""When a sample is done, and where its output ends.

One pair of functions used by every decoder, asked before a block is opened and after every commit.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a sample ends. ``stop_ids`` is empty when stop ids are ignored."""

    prompt_tokens: int
    max_tokens: int
    min_tokens: int = 0
    stop_ids: frozenset[int] = frozenset()

    @property
    def end(self) -> int:
        """First absolute position that cannot be output."""
        return self.prompt_tokens + self.max_tokens


class Ending(NamedTuple):
    """Absolute position after the last output token (stop id excluded), and why it ends there."""

    end: int
    reason: Literal["stop", "length"]


def ending(block: Tokens, *, start: int, mask_id: int, limits: Limits) -> Ending | None:
    """Where the output ends, if this block settles it; all earlier blocks are full.

    A stop id counts at an output position once every earlier position is committed; one in the
    prompt never counts, nor one before ``min_tokens``, nor one past the budget.

    Args:
        block: int64 [L], the current state.
        start: absolute position of the block.
        mask_id: the mask.
        limits: the sample's limits.
    """
    positions = start + np.arange(len(block))
    masked = np.flatnonzero((block == mask_id) & (positions >= limits.prompt_tokens))
    settled = int(positions[masked[0]]) if masked.size else start + len(block)
    if limits.stop_ids:
        stops = np.isin(block, list(limits.stop_ids))
        stops &= positions >= limits.prompt_tokens + limits.min_tokens
        stops &= positions < min(settled, limits.end)
        if stops.any():
            return Ending(int(positions[np.argmax(stops)]), "stop")
    return Ending(limits.end, "length") if settled >= limits.end else None
