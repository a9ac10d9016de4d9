"""The interface of a drafter.

Legend: L block length, K stale candidates, D drafts.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spot.targets.base import State

STALE_TOP = 32
LOG_FLOOR = -60.0
DOUBT_FLOOR = -40.0
ANY_DEPTH = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """Conditionals of the last evaluated state of a sequence, one commit older than its root.

    Rows of committed positions are unspecified. All values are rounded to fp16, in training and in
    use alike. ``doubts`` is the log of minus the best log-probability: where a target is sure, it
    keeps an order that the log-probability itself loses in fp16.
    """

    log_probs: NDArray[np.float16]  # [L, K], descending, untempered, floored
    doubts: NDArray[np.float16]  # [L]
    tokens: NDArray[np.int64]  # [L, K]
    masked: NDArray[np.bool_]  # [L], masked in the state they were computed at


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRequest:
    """One sequence that wants drafts this round."""

    root: State  # int64 [L]
    stale: Stale
    start: int  # absolute position of the block
    key: int  # sample key
    budget: int  # at most this many drafts
    step: int = 0  # transitions made in the block before the root
    full_states: bool = False  # whether a full state is of use
    depth: int = ANY_DEPTH  # transitions ahead worth looking; trees grow no deeper
    floor: float = 0.0  # mass under which a draft is of no use; trees leave such out
    deeper: float = 0.0  # mass under which it is not worth a level to look behind a draft


class Proposal(NamedTuple):
    """How a link of a chain was drawn: from a law over (position, token) pairs.

    ``law[s, k]`` is the probability that the link would have been (s, tokens[s, k]).
    """

    position: int  # in the block
    token: int
    tokens: NDArray[np.int64]  # [L, K]
    law: NDArray[np.float64]  # [L, K]


class Drafts(NamedTuple):
    """Drafted states in descending mass, parents before children."""

    states: State  # int64 [D, L]
    masses: NDArray[np.float32]  # [D], probability that the state is reached
    depths: NDArray[np.int64]  # [D], transitions beyond the root
    proposals: tuple[Proposal, ...] = ()  # of a sampled chain: how each state was drawn

    def pick(self, which: slice | NDArray[np.bool_]) -> "Drafts":
        """A part of the states; a chain's proposals stay, since they belong to its links."""
        return self._replace(
            states=self.states[which], masses=self.masses[which], depths=self.depths[which]
        )


class Drafter(Protocol):
    """Proposes states. Batched: one call serves every sequence of a round."""

    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """Drafts for each request, in order."""


def no_drafts(length: int) -> Drafts:
    """Nothing proposed."""
    return Drafts(np.empty((0, length), np.int64), np.empty(0, np.float32), np.empty(0, np.int64))
