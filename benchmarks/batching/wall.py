"""Wall-clock rows: a turn has a run of each policy of a cell, a row is the median of its ratios.

Machines drift, so a policy's ratio is taken against the draft-free run of the same turn, and a run
leaves caches and memory to the next one, so every turn has an order of its own. They drift within
seconds, too: where a percent matters, between draft-free decoding and the automatic budget, both
runs go on side by side, a slice of time each. A fixed policy under half of draft-free speed has no
second turn.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from statistics import median

from benchmarks.batching.cells import POLICIES, Cell, Policy
from benchmarks.batching.document import WALL, EngineRow
from benchmarks.batching.runs import Bench, Decoding, Run, drafter_for, fixed, row_of
from benchmarks.workload import Workload
from spot.drafters.base import Drafter
from workers.auto_budget import AutoBudget
from workers.budget import BudgetPolicy
from workers.profiling import profile

WARM_UP = 2  # samples that every policy decodes before it is measured
LEARNING = 16  # that the policy that learns has seen: a job is long, and these runs are short
TOO_SLOW = 0.5

RIVALS: tuple[Policy, ...] = ("draft_free", "auto")  # side by side
SLICE_S = 0.05  # shorter ones cost the smallest forwards their warm caches

Progress = Callable[[str], None]


@dataclass(slots=True)
class Turns:
    """What a policy's turns gave."""

    runs: list[Run] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    def median(self) -> tuple[Run, float]:
        """The run in the middle, by tokens per second, and the median ratio."""
        by_speed = sorted(self.runs, key=lambda run: run.tokens_per_s)
        return by_speed[len(by_speed) // 2], median(self.ratios)


class WallClock:
    """Measures cells; what the machine costs is profiled once for each drafter."""

    def __init__(
        self,
        bench: Bench,
        workload: Workload,
        *,
        repeats: int,
        progress: Progress,
        policies: tuple[Policy, ...] = POLICIES,
    ) -> None:
        self._bench, self._workload = bench, workload
        self._repeats, self._progress, self._policies = repeats, progress, policies
        self._profiles: dict[str, AutoBudget] = {}

    def rows(self, cell: Cell) -> list[EngineRow]:
        """One row for each policy."""
        players = {policy: self._player(policy, cell) for policy in self._policies}
        for policy, (drafter, budget) in players.items():
            num_samples = LEARNING if policy == "auto" else WARM_UP
            self._bench.run(cell, drafter=drafter, budget=budget, num_samples=num_samples)
        turns = {policy: Turns() for policy in self._policies}
        for turn in range(self._repeats):
            self._turn(cell, players, turns, turn=turn)
        free = turns["draft_free"].runs[0]
        rows = []
        for policy, taken in turns.items():
            run, ratio = taken.median()
            rows.append(row_of(cell, policy, run, clock=WALL, draft_free=free, ratio=ratio))
        self._progress(f"{cell}: " + ", ".join(_said(row) for row in rows))
        return rows

    def _turn(
        self,
        cell: Cell,
        players: dict[Policy, tuple[Drafter | None, BudgetPolicy]],
        turns: dict[Policy, Turns],
        *,
        turn: int,
    ) -> None:
        runs: dict[Policy, Run] = {}
        for group in _groups(list(players), turn=turn):
            if turn and group[0] not in RIVALS and turns[group[0]].ratios[0] < TOO_SLOW:
                continue
            decodings: dict[Policy, Decoding] = {}
            for policy in group:
                drafter, budget = players[policy]
                decodings[policy] = self._bench.begin(cell, drafter=drafter, budget=budget)
            side_by_side(list(decodings.values()))
            runs |= {policy: decoding.run() for policy, decoding in decodings.items()}
        for policy, run in runs.items():
            turns[policy].runs.append(run)
            turns[policy].ratios.append(run.tokens_per_s / runs["draft_free"].tokens_per_s)

    def _player(self, policy: Policy, cell: Cell) -> tuple[Drafter | None, BudgetPolicy]:
        mask_id = self._bench.target.spec.mask_id
        drafter = drafter_for(policy, cell.transition, self._workload, mask_id=mask_id)
        if policy != "auto":
            return drafter, fixed(policy)
        assert drafter is not None, "the automatic budget has a drafter"
        if cell.rule not in self._profiles:
            self._profiles[cell.rule] = profile(
                self._bench.target, drafter, clock=self._bench.clock
            )
        return drafter, deepcopy(self._profiles[cell.rule])


def _groups(policies: list[Policy], *, turn: int) -> list[list[Policy]]:
    """Who decodes side by side, and in which order this turn."""
    random = Random(turn)
    rivals = [policy for policy in policies if policy in RIVALS]
    groups = [random.sample(rivals, len(rivals))]
    groups += [[policy] for policy in policies if policy not in RIVALS]
    return random.sample(groups, len(groups))


def side_by_side(decodings: list[Decoding]) -> None:
    """Go on with whoever has had the least time, the first one of equals, until all are done."""
    while going := [decoding for decoding in decodings if decoding.has_work]:
        min(going, key=lambda decoding: decoding.seconds).advance(SLICE_S)


def _said(row: EngineRow) -> str:
    same = "" if row.identical else " DIFFERENT"
    return f"{row.policy} {row.ratio_to_draft_free:.3f}{same}"
