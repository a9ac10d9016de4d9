"""Rows on a simulated clock: draft-free decoding is recorded once, every policy replays it."""

from collections.abc import Sequence
from itertools import groupby

from benchmarks.batching.cells import POLICIES, Cell, Policy
from benchmarks.batching.clocks import ClockTable
from benchmarks.batching.document import EngineRow
from benchmarks.batching.recorded import Recording, RecordingTarget, ReplayedTarget
from benchmarks.batching.runs import Bench, Run, drafter_for, fixed, row_of
from benchmarks.batching.simulated import SimulatedClock, SimulatedDrafter, SimulatedTarget
from benchmarks.batching.wall import LEARNING, Progress
from benchmarks.workload import Workload
from spot.targets.base import Target
from workers.profiling import profile

# Samples of a cell: a sample has some 80 rounds under the strict rule and 40 under the other one,
# and what a handful of drafts at a run's tail brings is luck.
FEWEST = {"strict": 8, "threshold": 16}


def samples_of(cell: Cell) -> int:
    """How many samples a policy decodes on a simulated clock."""
    return max(FEWEST[cell.rule], cell.num_samples)


def simulated_rows(
    chosen: Sequence[Cell],
    tables: Sequence[ClockTable],
    *,
    bench: Bench,
    workload: Workload,
    progress: Progress,
    policies: tuple[Policy, ...] = POLICIES,
) -> list[EngineRow]:
    """One row for each table, cell and policy."""
    rows: list[EngineRow] = []
    for _, group in groupby(chosen, key=lambda cell: (cell.rule, cell.temperature)):
        together = list(group)
        most = max(together, key=samples_of)
        replayed = replayed_target(bench, most, num_samples=samples_of(most))
        for table in tables:
            for cell in together:
                found = _rows(cell, table, replayed, bench, workload, policies)
                said = ", ".join(f"{r.policy} {r.ratio_to_draft_free:.3f}" for r in found)
                progress(f"{table.name} ({table.source}) {cell}: {said}")
                rows += found
    return rows


def replayed_target(bench: Bench, cell: Cell, *, num_samples: int = 0) -> ReplayedTarget:
    """A record of draft-free decoding of the cell's samples, or of more."""
    recording = Recording()
    recorder = Bench(
        target=RecordingTarget(bench.target, recording),
        requests=bench.requests,
        clock=bench.clock,
    )
    most = max(num_samples, cell.num_samples)
    recorder.run(cell, drafter=None, budget=fixed("draft_free"), num_samples=most)
    return ReplayedTarget(bench.target, recording)


def _rows(
    cell: Cell,
    table: ClockTable,
    target: Target,
    bench: Bench,
    workload: Workload,
    policies: tuple[Policy, ...],
) -> list[EngineRow]:
    runs: dict[Policy, Run] = {
        policy: simulated_run(cell, policy, table, target, bench=bench, workload=workload)
        for policy in policies
    }
    free = runs["draft_free"]
    return [
        row_of(
            cell,
            policy,
            run,
            clock=table.name,
            draft_free=free,
            ratio=run.tokens_per_s / free.tokens_per_s,
        )
        for policy, run in runs.items()
    ]


def simulated_run(
    cell: Cell,
    policy: Policy,
    table: ClockTable,
    target: Target,
    *,
    bench: Bench,
    workload: Workload,
) -> Run:
    """One policy, alone on a clock of its own.

    The automatic budget profiles the simulated machine, and has learnt from some samples.
    """
    clock = SimulatedClock()
    modelled = Bench(
        target=SimulatedTarget(target, table, clock), requests=bench.requests, clock=clock
    )
    real = drafter_for(policy, cell.transition, workload, mask_id=target.spec.mask_id)
    drafter = None if real is None else SimulatedDrafter(real, table, clock)
    num_samples = samples_of(cell)
    if policy != "auto":
        return modelled.run(cell, drafter=drafter, budget=fixed(policy), num_samples=num_samples)
    assert drafter is not None, "the automatic budget has a drafter"
    budget = profile(modelled.target, drafter, clock=clock)
    modelled.run(cell, drafter=drafter, budget=budget, num_samples=LEARNING)
    return modelled.run(cell, drafter=drafter, budget=budget, num_samples=num_samples)
