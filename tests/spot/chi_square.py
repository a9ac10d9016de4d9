"""A chi-square test of samples against a known law."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import torch

MIN_EXPECTED = 5.0  # rarer outcomes are counted together

Outcome = TypeVar("Outcome", bound=Hashable)


def p_value(samples: Iterable[Outcome], law: Mapping[Outcome, float]) -> float:
    """How likely samples at least this far from the law are; 0 for an impossible sample."""
    counts = Counter(samples)
    if any(law.get(outcome, 0.0) == 0.0 for outcome in counts):
        return 0.0
    num = counts.total()
    common = [outcome for outcome, mass in law.items() if num * mass >= MIN_EXPECTED]
    found = [float(counts[outcome]) for outcome in common]
    expected = [num * law[outcome] for outcome in common]
    found.append(num - sum(found))
    expected.append(num - sum(expected))
    if expected[-1] < MIN_EXPECTED:  # too rare even together
        found[-2:], expected[-2:] = [sum(found[-2:])], [sum(expected[-2:])]
    pairs = zip(found, expected, strict=True)
    statistic = sum((count - mean) ** 2 / mean for count, mean in pairs)
    halves = torch.tensor([(len(found) - 1) / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(halves[0], halves[1]))
