"""One policy decodes a cell's samples through a real engine, on whatever clock and target."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.batching.cells import Cell, Policy
from benchmarks.batching.document import EngineRow
from benchmarks.traces import Trace, trace_of
from benchmarks.workload import Workload
from spot.drafters.base import Drafter
from spot.drafters.sets import SetsDrafter
from spot.drafters.spot import SpotDrafter, SpotOptions
from spot.limits import Limits
from spot.targets.base import Target
from spot.transition import Rule
from workers.budget import BudgetPolicy, FixedBudget
from workers.engine import Engine, EngineSettings
from workers.samples import SampleRequest, SampleResult

GAMMA = 0.1
BUDGETS: dict[Policy, int] = {"draft_free": 0, "d8": 8, "d20": 20, "gamma": 20}

Clock = Callable[[], float]


class Run(NamedTuple):
    """What one policy made of a cell's samples."""

    tokens: int  # stop tokens included
    seconds: float
    counters: dict[str, int]
    traces: list[Trace]

    @property
    def tokens_per_s(self) -> float:
        """The rate of the whole run, its tail included."""
        return self.tokens / self.seconds


def joined(runs: list[Run]) -> Run:
    """Runs one after another as one."""
    counters = Counter[str]()
    for run in runs:
        counters.update(run.counters)
    return Run(
        tokens=sum(run.tokens for run in runs),
        seconds=sum(run.seconds for run in runs),
        counters=dict(counters),
        traces=[trace for run in runs for trace in run.traces],
    )


class Decoding:
    """A run under way; its seconds are those of its own steps."""

    def __init__(self, engine: Engine, requests: list[SampleRequest], *, clock: Clock) -> None:
        self._engine, self._clock = engine, clock
        self._results: list[SampleResult] = []
        self.seconds = 0.0
        for request in requests:
            engine.add(request)

    @property
    def has_work(self) -> bool:
        """Whether it is not done."""
        return self._engine.has_work()

    def advance(self, limit_s: float) -> None:
        """Go on until so much time has passed; a step is never cut."""
        began = self._clock()
        passed = 0.0
        while self._engine.has_work() and passed < limit_s:
            self._results += self._engine.step()
            passed = self._clock() - began
        self.seconds += passed

    def run(self) -> Run:
        """What was made; all of it once there is no more work."""
        self._results.sort(key=lambda result: result.request.row)
        return Run(
            tokens=sum(result.tokens_with_stop for result in self._results),
            seconds=self.seconds,
            counters=self._engine.counters(),
            traces=[trace_of(result) for result in self._results],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What policies decode with and what they decode."""

    target: Target
    requests: list[SampleRequest]
    clock: Clock

    def run(
        self, cell: Cell, *, drafter: Drafter | None, budget: BudgetPolicy, num_samples: int = 0
    ) -> Run:
        """Decode the first samples, the cell's own number unless told otherwise."""
        decoding = self.begin(cell, drafter=drafter, budget=budget, num_samples=num_samples)
        decoding.advance(float("inf"))
        return decoding.run()

    def begin(
        self, cell: Cell, *, drafter: Drafter | None, budget: BudgetPolicy, num_samples: int = 0
    ) -> Decoding:
        """The same run, to be advanced bit by bit."""
        requests = self.requests[: num_samples or cell.num_samples]
        engine = self.engine(cell, drafter=drafter, budget=budget, requests=requests)
        return Decoding(engine, requests, clock=self.clock)

    def engine(
        self,
        cell: Cell,
        *,
        drafter: Drafter | None,
        budget: BudgetPolicy,
        requests: list[SampleRequest],
    ) -> Engine:
        """An engine with as many slots as the cell's concurrency and pages enough."""
        spec = self.target.spec

        def limits(request: SampleRequest) -> Limits:
            return Limits(
                prompt_tokens=len(request.prompt_ids),
                max_tokens=request.max_tokens,
                stop_ids=frozenset(spec.stop_ids),
            )

        longest = max(-(-limits(r).end // spec.block_length) for r in requests)
        settings = EngineSettings(
            rule=cell.transition,
            batch=cell.concurrency,
            num_pages=cell.concurrency * (longest + max(BUDGETS.values())),
            traced=True,
        )
        return Engine(
            self.target,
            settings=settings,
            limits=limits,
            drafter=drafter,
            budget=budget,
            clock=self.clock,
        )


def drafter_for(policy: Policy, rule: Rule, workload: Workload, *, mask_id: int) -> Drafter | None:
    """The order model's trees for the strict rule, sets for the threshold rule."""
    gamma = GAMMA if policy == "gamma" else 0.0
    if policy == "draft_free":
        return None
    if rule.name == "threshold":
        return SetsDrafter.load(workload.sets, rule=rule, mask_id=mask_id, gamma=gamma)
    options = SpotOptions(gamma=gamma)
    return SpotDrafter.load(workload.drafter, rule=rule, mask_id=mask_id, options=options)


def fixed(policy: Policy) -> BudgetPolicy:
    """The budget of every policy but ``auto``."""
    return FixedBudget(BUDGETS[policy])


def row_of(
    cell: Cell, policy: Policy, run: Run, *, clock: str, draft_free: Run, ratio: float
) -> EngineRow:
    """The result of a run; shares are those of the engine's own steps."""
    counters = run.counters
    spent = {part: counters[f"{part}_us"] for part in ("target", "drafter", "host")}
    total = max(1, sum(spent.values()))
    lookups = counters["page_hits"] + counters["page_misses"]
    return EngineRow(
        clock=clock,
        rule=cell.rule,
        temperature=cell.temperature,
        concurrency=cell.concurrency,
        policy=policy,
        tokens_per_s=run.tokens_per_s,
        ratio_to_draft_free=ratio,
        host_share=spent["host"] / total,
        drafter_share=spent["drafter"] / total,
        positions=counters["positions"],
        prefix_hit_rate=counters["page_hits"] / max(1, lookups),
        identical=run.traces == draft_free.traces,
    )
