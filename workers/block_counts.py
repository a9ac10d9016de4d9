"""Rounds and accepted drafts by block of the output: where in a sample drafts pay."""

from collections import Counter

LAST_BLOCK = 63
"""Blocks from here on are counted together, so that records stay small."""


class BlockCounts:
    """Counts over all samples of an engine."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, block: int, *, accepted: int) -> None:
        """One more round whose root was in this block of the output, from 0."""
        block = min(block, LAST_BLOCK)
        self._counts[f"block:{block}:rounds"] += 1
        self._counts[f"block:{block}:accepted"] += accepted

    def counters(self) -> dict[str, int]:
        """As counters of the engine."""
        return dict(self._counts)
