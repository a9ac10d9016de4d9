"""What a cell decodes on a simulated clock: streams of samples, one after another."""

from dataclasses import dataclass

from benchmarks.batching.cells import POLICIES, Cell, Policy
from benchmarks.batching.runs import Bench, Run, joined
from benchmarks.batching.simulated import SimulatedClock
from spot.drafters.base import Drafter
from spot.targets.base import Target
from workers.budget import BudgetPolicy

# Samples of a cell: a sample has some 80 rounds under the strict rule and 40 under the other one,
# and what a handful of drafts at a run's tail brings is luck.
FEWEST = {"strict": 8, "threshold": 16}
# Above temperature 0 only the tail of a large batch is worth drafting for, a few rounds in which
# single drafts decide; so the two policies that are nearly equal there decode several streams.
STREAMS, STREAMED = 4, ("draft_free", "auto")


def samples_of(cell: Cell) -> int:
    """How many samples a stream has on a simulated clock."""
    return max(FEWEST[cell.rule], cell.num_samples)


def streams_of(cell: Cell, policy: Policy) -> int:
    """How many streams a policy decodes, one after another."""
    is_close = cell.temperature > 0.0 and cell.concurrency > 1 and policy in STREAMED
    return STREAMS if is_close else 1


def prompts_of(cell: Cell) -> int:
    """How many prompts all streams of a cell take."""
    return samples_of(cell) * max(streams_of(cell, policy) for policy in POLICIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """A cell's samples, stream by stream, as far as there are prompts."""

    cell: Cell
    bench: Bench
    num: int = 1

    def run(
        self,
        target: Target,
        clock: SimulatedClock,
        *,
        drafter: Drafter | None,
        budget: BudgetPolicy,
    ) -> Run:
        """All of them, one after another."""
        size = samples_of(self.cell)
        requests = self.bench.requests[: self.num * size]
        runs = []
        for first in range(0, len(requests), size):
            clock.restart()
            bench = Bench(target=target, requests=requests[first : first + size], clock=clock)
            runs.append(bench.run(self.cell, drafter=drafter, budget=budget, num_samples=size))
        return joined(runs)
