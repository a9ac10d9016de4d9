"""How some figure spreads over samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Quantiles of a figure: the lower of the two values between which one falls."""

    p50: float
    p90: float
    p99: float
    max: float


def spread_of(values: Sequence[float]) -> Spread | None:
    """Quantiles of `values`, or None where there are none."""
    if not len(values):
        return None
    p50, p90, p99 = np.quantile(np.asarray(values, float), _QUANTILES, method="lower").tolist()
    return Spread(p50=p50, p90=p90, p99=p99, max=float(max(values)))
