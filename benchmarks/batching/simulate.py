"""Rows on a simulated clock: draft-free decoding is recorded once, every policy replays it."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby

from benchmarks.batching.cells import POLICIES, Cell, Policy
from benchmarks.batching.clocks import ClockTable
from benchmarks.batching.document import EngineRow
from benchmarks.batching.recorded import (
    Call,
    Recording,
    RecordingTarget,
    ReplayedDrafter,
    ReplayedTarget,
)
from benchmarks.batching.runs import Bench, Run, drafter_for, fixed, row_of
from benchmarks.batching.simulated import SimulatedClock, SimulatedDrafter, SimulatedTarget
from benchmarks.batching.streams import Streams, prompts_of, streams_of
from benchmarks.batching.wall import LEARNING, Progress
from benchmarks.workload import Workload
from spot.targets.base import Target
from workers.profiling import profile


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
        most = max(together, key=prompts_of)
        replayed = replayed_target(bench, most, num_samples=prompts_of(most))
        calls = defaultdict[tuple[Cell, Policy], list[Call]](list)
        for table in tables:
            for cell in together:
                found = _rows(cell, table, replayed, bench, workload, policies, calls)
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
    calls: dict[tuple[Cell, Policy], list[Call]],
) -> list[EngineRow]:
    def run(policy: Policy, num_streams: int) -> Run:
        streams = Streams(cell=cell, bench=bench, num=num_streams)
        # What fixed policies ask for does not depend on the clock.
        record = None if policy == "auto" else calls[cell, policy]
        return simulated_run(
            policy, table, target, streams=streams, workload=workload, record=record
        )

    numbers = {policy: streams_of(cell, policy) for policy in policies}
    free = {num: run("draft_free", num) for num in set(numbers.values())}
    rows = []
    for policy, num in numbers.items():
        found = free[num] if policy == "draft_free" else run(policy, num)
        ratio = found.tokens_per_s / free[num].tokens_per_s
        rows.append(
            row_of(cell, policy, found, clock=table.name, draft_free=free[num], ratio=ratio)
        )
    return rows


def simulated_run(
    policy: Policy,
    table: ClockTable,
    target: Target,
    *,
    streams: Streams,
    workload: Workload,
    record: list[Call] | None = None,
) -> Run:
    """One policy, alone on a clock of its own; calls of the drafter are recorded or replayed.

    The automatic budget profiles the simulated machine, and has learnt from some samples.
    """
    clock, cell = SimulatedClock(), streams.cell
    modelled = SimulatedTarget(target, table, clock)
    real = drafter_for(policy, cell.transition, workload, mask_id=target.spec.mask_id)
    if real is not None and record is not None:
        real = ReplayedDrafter(real, record)
    drafter = None if real is None else SimulatedDrafter(real, table, clock)
    if policy != "auto":
        return streams.run(modelled, clock, drafter=drafter, budget=fixed(policy))
    assert drafter is not None, "the automatic budget has a drafter"
    budget = profile(modelled, drafter, clock=clock)
    learning = Bench(target=modelled, requests=streams.bench.requests, clock=clock)
    learning.run(cell, drafter=drafter, budget=budget, num_samples=LEARNING)
    return streams.run(modelled, clock, drafter=drafter, budget=budget)
