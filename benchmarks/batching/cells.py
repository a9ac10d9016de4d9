"""What is compared: policies within a cell of rule, temperature and concurrency."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

from spot.transition import Rule

Policy = Literal["draft_free", "d8", "d20", "gamma", "auto"]
"""``d8`` and ``d20`` always ask for so many drafts; ``gamma`` for 20 above a mass floor."""

POLICIES: tuple[Policy, ...] = get_args(Policy)
CONCURRENCIES = (1, 2, 4, 8, 16, 32)
OUTER = (1, 32)  # measured above temperature 0 too
TAU = 0.9
FEWEST, SAMPLES_PER_SLOT = 5, 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One load; its policies decode the same samples."""

    rule: Literal["strict", "threshold"]
    temperature: float
    concurrency: int

    @property
    def transition(self) -> Rule:
        """The rule with its constants."""
        tau = TAU if self.rule == "threshold" else None
        return Rule(name=self.rule, tau=tau, temperature=self.temperature)

    @property
    def num_samples(self) -> int:
        """As many as fill the slots one and a quarter times: a stream and its tail."""
        return max(FEWEST, int(SAMPLES_PER_SLOT * self.concurrency))

    def __str__(self) -> str:
        return f"{self.rule} T {self.temperature:g} concurrency {self.concurrency}"


def cells(concurrencies: tuple[int, ...] = CONCURRENCIES) -> list[Cell]:
    """All cells, those of one rule and temperature together."""
    return list(_cells(concurrencies))


def _cells(concurrencies: tuple[int, ...]) -> Iterator[Cell]:
    rules: tuple[Literal["strict", "threshold"], ...] = ("strict", "threshold")
    for rule, temperature in product(rules, (0.0, 1.0)):
        for concurrency in concurrencies:
            if temperature == 0.0 or concurrency in OUTER:
                yield Cell(rule=rule, temperature=temperature, concurrency=concurrency)
