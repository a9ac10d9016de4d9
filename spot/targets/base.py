"""The contract of a target: blocks with page tables go in, hidden states and logits come out.

A target whose attention looks both ways has no exact pages: its whole canvas is evaluated when a
block opens, and states of the block are evaluated against what that forward left.

Legend: U units, S states, L block length, E hidden size, R rows, V vocabulary rows, K key heads,
D head size, T positions that are frozen.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spot.attention import KVPages
from spot.targets.checkpoint import TargetSpec
from spot.targets.logit_rows import Head, LogitRows

State = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One block state to evaluate, or one finished block to store.

    ``pages`` are the pages of all earlier blocks, in order; ``write`` is the page that receives
    this block's keys and values, or -1. A page may be written by one unit and read by another of
    the same forward.
    """

    state: State
    start: int
    pages: tuple[int, ...]
    write: int = -1


class Tokenizer(Protocol):
    """The part of a tokenizer that spotbatch uses."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Text to ids."""

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        """Ids to text."""


class Target(Protocol):
    """A diffusion language model with exact prefix pages."""

    spec: TargetSpec
    banned: Tensor

    def new_pages(self, num_pages: int) -> KVPages:
        """An empty pool."""

    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        """Final hidden states [U, L, E]; a unit's do not depend on the other units."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden rows [R, E] to logits [R, V]; a row does not depend on the others."""


class Conditionals(NamedTuple):
    """What one forward leaves at the masked positions of the evaluated states.

    ``row_of`` [S, L] maps (state, position) to a row, -1 where committed; the rest is per row.
    """

    row_of: Tensor  # int64 [S, L]
    logits: LogitRows  # fp32 [R, V], banned ids at -inf
    confidence: Tensor  # fp32 [R]
    token: Tensor  # int64 [R], the untempered best token

    def dense_confidence(self) -> Tensor:
        """[S, L], -inf where committed."""
        committed = self.row_of < 0
        return self.confidence[self.row_of.clamp(min=0)].masked_fill(committed, -torch.inf)


def evaluate(target: Target, units: list[Unit], pages: KVPages, *, num_states: int) -> Conditionals:
    """One target forward; the first ``num_states`` units are states, the rest only store.

    Logits and row statistics are computed at masked positions only.
    """
    hidden = target.hidden(units, pages)[:num_states]
    return conditionals_of(target, hidden, np.stack([u.state for u in units[:num_states]]))


class MaskedHead(Head, Protocol):
    """A head that knows what a masked position holds."""

    spec: TargetSpec


def conditionals_of(head: MaskedHead, hidden: Tensor, states: State) -> Conditionals:
    """Conditionals at the masked positions of evaluated states.

    Args:
        head: the target.
        hidden: [S, L, E], row l predicting position l.
        states: int64 [S, L].
    """
    masked = torch.from_numpy(states == head.spec.mask_id).to(hidden.device)
    row_of = (masked.flatten().cumsum(0).view_as(masked) - 1).masked_fill(~masked, -1)
    logits = LogitRows(head, hidden[masked])
    return Conditionals(row_of, logits, *logits.best())


CacheContext = Literal["prefix", "prefix+suffix"]


class Canvas(NamedTuple):
    """A whole canvas, int64 [N], and where the block begins that is to be opened."""

    tokens: State
    start: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Opened:
    """What the forward over a whole canvas leaves when a block opens.

    ``hidden`` [L, E] predicts the block's positions in the state that the canvas had. ``keys`` and
    ``values`` are those of the frozen positions, rotated, per layer [K, T, D]. ``before`` [E] is
    the row that predicts the block's first position where logits are shifted and the block is not
    the canvas's first; it is frozen like the keys and values.
    """

    start: int
    hidden: Tensor
    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    before: Tensor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasUnit:
    """One state of an open block, int64 [L]; it sees what was frozen, and itself."""

    state: State
    opened: Opened


class CanvasTarget(Protocol):
    """A diffusion language model whose attention looks both ways.

    Rows of hidden states are aligned: row l predicts position l of the block. Where a family's
    logits are shifted, the target shifts them, across the block's boundary too.
    """

    spec: TargetSpec
    banned: Tensor

    def open(self, canvases: list[Canvas], *, context: CacheContext) -> list[Opened]:
        """One forward over whole canvases; what it leaves for each does not depend on the others.

        ``prefix`` freezes the positions before the block, ``prefix+suffix`` those behind it too.
        """

    def hidden(self, units: list[CanvasUnit]) -> Tensor:
        """Final hidden states [U, L, E]; a unit's do not depend on the other units."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden rows [R, E] to logits [R, V]; a row does not depend on the others."""
