"""A target made of tables: so small that every trajectory can be enumerated.

A page holds its block's tokens and a digest of everything before it, which is what a page of keys
and values amounts to. Reading one that was never written, or that belongs behind another prefix, is
an error. The logits of two ids that must never be output are always the best.

Legend: L positions of a block, V rows of the vocabulary.
"""

import math
import zlib
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spot.attention import KVPages
from spot.targets.base import State, Unit
from spot.targets.checkpoint import TargetSpec
from spot.targets.family import Attention, Grid

Ids = tuple[int, ...]
Logits = NDArray[np.float32]
# Logits [L, V] by the tokens of all earlier blocks and the state.
Table = Callable[[Ids, Ids], Logits]

NUM_TOKENS, MASK_ID, OUTSIDE_ID, VOCAB_ROWS = 4, 4, 5, 6
LENGTH = 4
NOBODY = 1  # digest before the first block
EMPTY = -1  # token of a page that was never written


class ToyHead:
    """What toys have in common: the vocabulary, and logits from a table where others have rows."""

    def __init__(
        self,
        table: Table,
        *,
        length: int,
        grid: Grid = "sequence",
        attention: Attention = "block-causal",
    ) -> None:
        torch.set_num_threads(1)
        self.spec = TargetSpec(
            family="toy",
            block_length=length,
            mask_id=MASK_ID,
            stop_ids=(),
            pad_id=0,
            vocab_rows=VOCAB_ROWS,
            max_positions=1000,
            grid=grid,
            attention=attention,
        )
        self.banned = torch.arange(VOCAB_ROWS) >= NUM_TOKENS
        self._table = table
        self._seen: dict[tuple[Ids, Ids], Tensor] = {}

    def logits(self, hidden: Tensor) -> Tensor:
        """Nothing left to do."""
        return hidden

    def rows_of(self, outside: Ids, state: State) -> Tensor:
        """Logits [L, V] of a state, by what it sees."""
        name = outside, tuple(state.tolist())
        if name not in self._seen:
            self._seen[name] = torch.from_numpy(self._table(*name))
        return self._seen[name]


class ToyTarget(ToyHead):
    """Satisfies ``spot.targets.base.Target``; remembers what it was asked to evaluate."""

    def __init__(self, table: Table, *, length: int = LENGTH) -> None:
        super().__init__(table, length=length)
        self.forwards: list[list[Unit]] = []

    def new_pages(self, num_pages: int) -> KVPages:
        """Tokens as keys, digests as values."""
        shape = (num_pages, 1, self.spec.block_length, 1)
        pages = KVPages(num_layers=1, shape=shape, like=torch.zeros(0, dtype=torch.int64))
        pages.keys[0].fill_(EMPTY)
        return pages

    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        """The logits themselves, [U, L, V]."""
        self.forwards.append(units)
        for unit in sorted(units, key=lambda u: len(u.pages)):
            if unit.write >= 0:
                self._write(unit, pages)
        return torch.stack([self.rows_of(self._prefix(unit, pages), unit.state) for unit in units])

    def _write(self, unit: Unit, pages: KVPages) -> None:
        prefix = self._prefix(unit, pages)
        digest = _digest(prefix, len(unit.state))
        tokens = torch.from_numpy(unit.state).view(1, 1, -1, 1)
        pages.write(0, torch.tensor([unit.write]), tokens, torch.full_like(tokens, digest))

    def _prefix(self, unit: Unit, pages: KVPages) -> Ids:
        """The tokens behind a page table, checked page by page."""
        length, prefix = self.spec.block_length, ()
        assert unit.start == length * len(unit.pages), "the page table has another length"
        keys, values = pages.keys[0].numpy(), pages.values[0].numpy()
        for page in unit.pages:
            tokens = keys[page, 0, :, 0].tolist()
            assert EMPTY not in tokens, f"page {page} was never written"
            assert values[page, 0, 0, 0] == _digest(prefix, length), f"page {page} is misplaced"
            prefix += tuple(tokens)
        return prefix


def _digest(prefix: Ids, length: int) -> int:
    """Names the prefix of a page, and how deep it is."""
    return zlib.crc32(bytes(prefix), NOBODY) + len(prefix) // length


def _rng(prefix: Ids, *more: int) -> np.random.Generator:
    return np.random.default_rng([len(prefix), *prefix, *more])


def _rows(values: NDArray[np.float64]) -> Logits:
    """Logits of the tokens, [L, NUM_TOKENS], and the tempting ones of the banned ids."""
    tempting = np.full((len(values), VOCAB_ROWS - NUM_TOKENS), 9.0)
    return np.concatenate([values, tempting], axis=1).astype(np.float32)


def _peaked(rng: np.random.Generator, heights: NDArray[np.floating]) -> Logits:
    """One token a position stands out, by the given height; the others are equal."""
    values = np.zeros((len(heights), NUM_TOKENS))
    values[np.arange(len(heights)), rng.integers(0, NUM_TOKENS, len(heights))] = heights
    return _rows(values)


def random_table(prefix: Ids, state: Ids) -> Logits:
    """Nothing in one state says anything about another."""
    return _rows(2.0 * _rng(prefix, *state).normal(size=(len(state), NUM_TOKENS)))


def flipping_table(prefix: Ids, state: Ids) -> Logits:
    """Each commit turns the order of confidence around."""
    order = _rng(prefix).permutation(len(state))
    if sum(token != MASK_ID for token in state) % 2:
        order = order.max() - order
    return _peaked(_rng(prefix, *state), 0.4 + 0.9 * order)


def near_table(prefix: Ids, state: Ids) -> Logits:
    """Confidences within 0.0001 of each other, around 0.7."""
    rng = _rng(prefix, *state)
    shifts = rng.permutation(len(state)).astype(np.float64) - 1.5
    return _peaked(rng, math.log(7.0) + 1e-4 * shifts)


def tied_table(prefix: Ids, state: Ids) -> Logits:
    """Equal confidences at all positions; in every other state the tokens are equal as well."""
    rng = _rng(prefix, *state)
    return _peaked(rng, np.full(len(state), float(rng.integers(0, 2))))


def steady_table(prefix: Ids, state: Ids) -> Logits:
    """States agree about most things, so that guesses from stale conditionals are often right."""
    rng, num = _rng(prefix), len(state)
    heights = 1.0 + 0.8 * rng.permutation(num)[:, None]
    values = heights * np.eye(NUM_TOKENS)[rng.integers(0, NUM_TOKENS, num)]
    return _rows(values + 0.5 * _rng(prefix, *state).normal(size=(num, NUM_TOKENS)))


TABLES = (random_table, flipping_table, near_table, tied_table)


def mixed_table(prefix: Ids, state: Ids) -> Logits:
    """The table that the very first token chooses, so that one batch meets them all."""
    return TABLES[(prefix + state)[0] % len(TABLES)](prefix, state)
