"""The contract of a target: blocks with page tables go in, hidden states and logits come out.

Legend: U units, L block length, E hidden size, R rows, V vocabulary rows.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spot.attention import KVPages
from spot.targets.checkpoint import TargetSpec
from spot.transition import ban, confidence

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
    logits: Tensor  # fp32 [R, V], banned ids at -inf
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
    states = np.stack([u.state for u in units[:num_states]])
    masked = torch.from_numpy(states == target.spec.mask_id).to(hidden.device)
    row_of = (masked.flatten().cumsum(0).view_as(masked) - 1).masked_fill(~masked, -1)
    logits = ban(target.logits(hidden[masked]), target.banned)
    conf, token = confidence(logits)
    return Conditionals(row_of, logits, conf, token)
