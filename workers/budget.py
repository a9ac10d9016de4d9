"""How many drafts a round takes: a fixed number per sequence, or what the load leaves to spare.

A draft costs a whole block and yields at most one commit: it pays only while a forward has slack.
The automatic budget (design "The engine and its budget") decides in two steps: a *gate*, from the
recent mass profile and the measured costs, says whether to draft at all; then, once masses are
known, the prefix of the mass-sorted candidates with the best rate of commits per second is taken.
Outputs never depend on any of this.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_DRAFTS = 24
PROBE_EVERY = 64  # rounds between probes while the gate is shut
MEMORY = 0.1  # weight of the newest observation in running means


class BudgetPolicy(Protocol):
    """Decides what is drafted and what of it is evaluated."""

    def ask(self, num_roots: int, num_units: int) -> int:
        """Drafts to ask the drafter for, per sequence; 0 shuts drafting off this round."""

    def choose(self, masses: list[Floats], *, num_units: int) -> list[int]:
        """How many of each sequence's drafts (heaviest first) are evaluated."""

    def observe_drafting(self, seconds: float) -> None:
        """What the drafter's call cost."""

    def observe_round(self, *, num_units: int, seconds: float, mass: float, accepted: int) -> None:
        """What the target's forward cost and brought."""


class FixedBudget:
    """The paper's recipe: always the same budget."""

    def __init__(self, budget: int) -> None:
        self._budget = budget

    def ask(self, num_roots: int, num_units: int) -> int:
        """The budget, whatever the load."""
        return self._budget

    def choose(self, masses: list[Floats], *, num_units: int) -> list[int]:
        """Everything."""
        return [len(m) for m in masses]

    def observe_drafting(self, seconds: float) -> None:
        """Not needed."""

    def observe_round(self, *, num_units: int, seconds: float, mass: float, accepted: int) -> None:
        """Not needed."""


@dataclass(slots=True)
class ForwardCost:
    """Seconds of a target forward by number of units: a profile, scaled by what is seen."""

    units: Floats
    seconds: Floats
    scale: float = 1.0

    def __call__(self, num_units: Floats | float) -> Floats:
        """Interpolated; beyond the profile, in proportion to its last point."""
        inside = np.interp(num_units, self.units, self.seconds)
        beyond = np.maximum(np.asarray(num_units) / self.units[-1], 1.0)
        return np.asarray(self.scale * inside * beyond)

    def observe(self, num_units: int, seconds: float) -> None:
        """Follow the machine's present speed; single outliers are cut."""
        ratio = seconds / max(float(self(num_units)), 1e-9)
        self.scale *= 1.0 + MEMORY * (min(ratio, 2.0) - 1.0)


@dataclass(slots=True)
class AutoBudget:
    """The load-aware budget."""

    cost: ForwardCost
    draft_seconds: float
    profile: Floats = field(default_factory=lambda: np.power(0.9, np.arange(1.0, MAX_DRAFTS + 1)))
    reality: float = 1.0  # accepted drafts per unit of predicted mass
    rounds_shut: int = 0

    def ask(self, num_roots: int, num_units: int) -> int:
        """The gate: the best rate with drafts, by the recent profile, against the rate without."""
        each = np.arange(1.0, MAX_DRAFTS + 1)
        gain = num_roots * (1.0 + self.reality * np.cumsum(self.profile))
        rates = gain / (self.cost(num_units + num_roots * each) + self.draft_seconds)
        best = int(np.argmax(rates))
        if rates[best] > num_roots / float(self.cost(num_units)):
            self.rounds_shut = 0
            return min(MAX_DRAFTS, 2 * (best + 1))
        self.rounds_shut += 1
        return 4 if self.rounds_shut % PROBE_EVERY == 0 else 0

    def choose(self, masses: list[Floats], *, num_units: int) -> list[int]:
        """Scan all prefixes of the mass-sorted candidates (the cost is not convex)."""
        self._remember(masses)
        owner = np.repeat(np.arange(len(masses)), [len(m) for m in masses])
        mass = np.concatenate([*masses, np.empty(0)])
        order = np.argsort(-mass, kind="stable")
        gain = len(masses) + self.reality * np.concatenate([[0.0], np.cumsum(mass[order])])
        rates = gain / self.cost(num_units + np.arange(len(mass) + 1.0))
        taken = owner[order[: int(np.argmax(rates))]]
        return [int(n) for n in np.bincount(taken, minlength=len(masses))]

    def _remember(self, masses: list[Floats]) -> None:
        for m in masses:
            padded = np.zeros(MAX_DRAFTS)
            padded[: len(m)] = m
            self.profile = self.profile + MEMORY * (padded - self.profile)

    def observe_drafting(self, seconds: float) -> None:
        """Running mean."""
        self.draft_seconds += MEMORY * (seconds - self.draft_seconds)

    def observe_round(self, *, num_units: int, seconds: float, mass: float, accepted: int) -> None:
        """Refresh the forward's cost and how much predicted mass is worth."""
        self.cost.observe(num_units, seconds)
        if mass > 0.0:
            ratio = min(accepted / mass, 2.0)
            self.reality += 0.2 * MEMORY * (ratio - self.reality)
