"""How many drafts a round takes: the interface of the policies, and the fixed one.

Outputs never depend on any of this.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spot.drafters.base import ANY_DEPTH, Drafts
from workers.costs import ForwardSize

Name = tuple[int, int, int]
"""Shard, row and sample."""


class Root(NamedTuple):
    """A root that could have drafts next round."""

    name: Name
    context: int  # positions outside its block that it attends to
    masked: int  # positions of its block
    room: int  # commits that a draft of use may be ahead; fewer than masked where full ones are not


class Ask(NamedTuple):
    """What the drafter is asked for; the fields of ``DraftRequest`` that limit its drafts."""

    drafts: int
    depth: int = ANY_DEPTH
    floor: float = 0.0
    deeper: float = 0.0


NOTHING = Ask(0)


class Drafted(NamedTuple):
    """What came of an ask."""

    root: Root
    ask: Ask
    drafts: Drafts
    full: NDArray[np.bool_]  # [M], whether a draft fills the block


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """One round: what it computed, what that took, what became of its drafts."""

    size: ForwardSize
    target_s: float
    drafter_s: float
    host_s: float
    num_sequences: int
    masses: NDArray[np.float64]  # of the evaluated drafts, [M]
    accepted: NDArray[np.bool_]  # whether the walk passed them, [M]


class BudgetPolicy(Protocol):
    """Decides what is drafted and what of it is evaluated."""

    def is_shut(self, masked: list[int], *, num_sequences: int) -> bool:
        """Whether it is known at a glance that ``ask`` would let nobody draft.

        Args:
            masked: positions of each root, at least 1.
            num_sequences: whose roots the next round evaluates.
        """

    def ask(self, roots: list[Root], *, base: ForwardSize, num_sequences: int) -> list[Ask]:
        """What to draft for each root next round; a round without drafts is of size ``base``."""

    def choose(
        self, drafted: list[Drafted], *, base: ForwardSize, num_sequences: int, seconds: float
    ) -> list[int]:
        """How many of each root's drafts, heaviest first, are evaluated.

        Args:
            drafted: what the drafter proposed in this round's call.
            base: the round without drafts.
            num_sequences: whose roots it evaluates.
            seconds: what the call took.
        """

    def observe(self, spent: Spent) -> None:
        """A round is over."""


class FixedBudget:
    """The paper's recipe: always the same budget."""

    def __init__(self, budget: int) -> None:
        self.num_drafts = budget  # of each root

    def is_shut(self, masked: list[int], *, num_sequences: int) -> bool:
        """Never."""
        return False

    def ask(self, roots: list[Root], *, base: ForwardSize, num_sequences: int) -> list[Ask]:
        """The budget, whatever the load."""
        return [Ask(self.num_drafts)] * len(roots)

    def choose(
        self, drafted: list[Drafted], *, base: ForwardSize, num_sequences: int, seconds: float
    ) -> list[int]:
        """Everything."""
        return [len(d.drafts.states) for d in drafted]

    def observe(self, spent: Spent) -> None:
        """Nothing to learn."""
