"""Logits of masked rows, computed where they are looked at.

All rows of a forward times a large vocabulary would be gigabytes (8,000 rows of 152,000 ids: 5 GB
in fp32), and most rows are needed for two numbers only: the best token and its probability. So rows
go through the head in pieces; where they all fit into one, they are kept, else what is looked at
later is computed again. The same row gives the same bits either way, as far as the numerics class
promises that for products (``spot.numerics``).

Legend: R rows, E hidden size, V vocabulary.
"""

from typing import Protocol, Self

import torch
from torch import Tensor

from spot.numerics import ROW_TILE
from spot.transition import ban, confidence

PIECE_BYTES = 2**27  # of fp32 logits that are computed, or kept, at once


def rows_at_once(vocab_size: int, *, bytes_each: int = 4) -> int:
    """Rows of a piece: whole tiles, at least one."""
    return max(1, PIECE_BYTES // (bytes_each * vocab_size * ROW_TILE)) * ROW_TILE


class Head(Protocol):
    """What turns hidden states into logits, whatever computed them."""

    banned: Tensor  # bool [V]

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden rows [R, E] to logits [R, V]; a row does not depend on the others."""


class LogitRows:
    """The logits of R hidden rows [R, E] under a target's head: fp32 [R, V], banned ids at -inf."""

    def __init__(self, head: Head, hidden: Tensor, *, kept: Tensor | None = None) -> None:
        self._head, self._hidden, self._kept = head, hidden, kept

    @property
    def shape(self) -> tuple[int, ...]:
        """(R, V)."""
        return len(self._hidden), len(self._head.banned)

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """Those of some rows, by number, from what was kept or computed again."""
        if self._kept is not None:
            return self._kept[rows]
        return self._logits(self._hidden[rows])

    def best(self) -> tuple[Tensor, Tensor]:
        """Each row's confidence fp32 [R] and best token int64 [R]; keeps what fits."""
        pieces = self._hidden.split(rows_at_once(self.shape[1]))
        if len(pieces) == 1:
            self._kept = self._logits(self._hidden)
            return confidence(self._kept)
        found = [confidence(self._logits(piece)) for piece in pieces]
        return torch.cat([conf for conf, _ in found]), torch.cat([token for _, token in found])

    def _logits(self, hidden: Tensor) -> Tensor:
        return ban(self._head.logits(hidden), self._head.banned)

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        """The rows of consecutive pieces of a forward; kept ones together where they fit."""
        hidden = torch.cat([part._hidden for part in parts])
        fits = len(hidden) <= rows_at_once(parts[0].shape[1])
        kept = [part._kept for part in parts if part._kept is not None]
        whole = torch.cat(kept) if fits and len(kept) == len(parts) else None
        return cls(parts[0]._head, hidden, kept=whole)
