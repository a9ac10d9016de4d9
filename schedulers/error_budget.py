"""How many samples of a job may be errors before it stops: a wrong template spoils them all."""

from schedulers.limits import Limits


class ErrorBudget:
    """Counts samples of committed shards."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.errors = 0
        self.samples = 0

    def count(self, *, ok: int, errors: int) -> None:
        """Samples of one more shard."""
        self.errors += errors
        self.samples += ok + errors

    @property
    def is_exceeded(self) -> bool:
        """Whether there are enough samples to judge by, and too many errors among them."""
        is_judged = self.samples >= self._limits.judged_from_samples
        return is_judged and self.errors > self._limits.max_error_fraction * self.samples
