"""A clock that moves by a cost table: real scheduler, drafter and acceptances, modelled seconds."""

from torch import Tensor

from benchmarks.batching.clocks import ClockTable
from spot.attention import KVPages
from spot.drafters.base import Drafter, DraftRequest, Drafts
from spot.targets.base import Target, Unit
from workers.costs import ForwardSize
from workers.masses import levels_of


class SimulatedClock:
    """Seconds that only move when told."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        """Now."""
        return self._now_s

    def restart(self) -> None:
        """Begin at zero again, so that equal runs take equal seconds to the last bit."""
        self._now_s = 0.0

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now_s += seconds


class SimulatedTarget:
    """A target whose forwards take what the table says."""

    def __init__(self, target: Target, table: ClockTable, clock: SimulatedClock) -> None:
        self._target, self._cost, self._clock = target, table.forward_cost(), clock
        self._row_s = table.row_s
        self.spec, self.banned = target.spec, target.banned

    def new_pages(self, num_pages: int) -> KVPages:
        """The target's."""
        return self._target.new_pages(num_pages)

    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        """The target's; takes the time of its positions and pairs."""
        length = self.spec.block_length
        pairs = sum(len(unit.pages) + 1 for unit in units) * length * length
        self._clock.advance(float(self._cost(ForwardSize(len(units) * length, pairs))))
        return self._target.hidden(units, pages)

    def logits(self, hidden: Tensor) -> Tensor:
        """The target's; takes the time of its rows."""
        self._clock.advance(self._row_s * len(hidden))
        return self._target.logits(hidden)


class SimulatedDrafter:
    """A drafter whose calls take what the table says: a call, its levels, its drafts."""

    def __init__(self, drafter: Drafter, table: ClockTable, clock: SimulatedClock) -> None:
        self._drafter, self._costs, self._clock = drafter, table.drafter, clock

    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """The drafter's."""
        proposed = self._drafter.propose(requests)
        levels = max(
            levels_of(p, depth=r.depth, deeper=r.deeper)
            for r, p in zip(requests, proposed, strict=True)
        )
        drafts = sum(len(p.states) for p in proposed)
        costs = self._costs
        self._clock.advance(costs.call_s + levels * costs.level_s + drafts * costs.draft_s)
        return proposed
