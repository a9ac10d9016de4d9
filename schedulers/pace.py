"""How long shards take here, from those that were committed in this run."""

from collections import deque
from statistics import median

_REMEMBERED = 64


class Pace:
    """Seconds per unit of expected cost, as a median that one odd shard does not move."""

    def __init__(self) -> None:
        self._rates: deque[float] = deque(maxlen=_REMEMBERED)

    def committed(self, expected_cost: float, *, took_s: float) -> None:
        """A shard of this cost took so long, from its lease to its commit."""
        self._rates.append(took_s / max(expected_cost, 1.0))

    def expected_s(self, expected_cost: float) -> float | None:
        """How long a fresh attempt takes; None before the first commit."""
        if not self._rates:
            return None
        return median(self._rates) * max(expected_cost, 1.0)

    def remaining_s(self, expected_cost: float, *, age_s: float, fraction: float) -> float | None:
        """How long an attempt of this age still needs; None where nothing says so.

        Without a finished sample it is taken to need at least as long again as it has had.
        """
        if fraction > 0.0:
            return age_s * (1.0 - fraction) / fraction
        expected_s = self.expected_s(expected_cost)
        return None if expected_s is None else max(expected_s, age_s)
