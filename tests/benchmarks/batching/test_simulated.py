"""Simulated clocks: recorded forwards, modelled seconds, the same samples."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Literal, NamedTuple

import numpy as np
import pytest
import torch

from benchmarks.batching.cells import POLICIES, Cell, cells
from benchmarks.batching.clocks import read_clock
from benchmarks.batching.recorded import (
    Call,
    Recording,
    RecordingTarget,
    ReplayedDrafter,
    ReplayedTarget,
)
from benchmarks.batching.runs import Bench, Decoding, Run, drafter_for, fixed
from benchmarks.batching.simulate import replayed_target, simulated_rows, simulated_run
from benchmarks.batching.simulated import SimulatedClock, SimulatedDrafter, SimulatedTarget
from benchmarks.batching.slots import stream_over_single_shard
from benchmarks.batching.streams import Streams, prompts_of, samples_of, streams_of
from benchmarks.workload import Workload, load
from spot.drafters.base import DraftRequest, Drafts, Stale
from spot.targets.base import Unit, evaluate
from tests.spot.drafting import all_of
from tests.spot.toy import LENGTH, ToyTarget, random_table

TABLE = read_clock("h200-8b")
STRICT = Cell(rule="strict", temperature=0.0, concurrency=2)


class Script(NamedTuple):
    """Proposes the same whatever is asked."""

    drafts: Drafts

    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        return [self.drafts] * len(requests)


def _unit(*state: int) -> Unit:
    return Unit(state=np.array(state), start=0, pages=())


def test_a_forward_takes_what_the_table_says_of_positions_pairs_and_rows() -> None:
    clock = SimulatedClock()
    target = SimulatedTarget(ToyTarget(random_table), TABLE, clock)
    evaluate(target, [_unit(0, 4, 4, 1)] * 3, target.new_pages(1), num_states=3)
    pairs, rows = 3 * LENGTH * LENGTH, 6
    expected = TABLE.seconds[0] + TABLE.pair_s * pairs + TABLE.row_s * rows
    assert clock() == pytest.approx(expected)


def test_a_call_of_the_drafter_takes_its_levels_and_drafts() -> None:
    clock = SimulatedClock()
    masses = np.array([0.9, 0.5, 0.1], np.float32)
    drafts = Drafts(np.zeros((3, 4), np.int64), masses, np.array([1, 2, 3]))
    stale = Stale(
        log_probs=np.zeros((4, 32), np.float16),
        doubts=np.zeros(4, np.float16),
        tokens=np.zeros((4, 32), np.int64),
        masked=np.ones(4, bool),
    )
    request = DraftRequest(root=np.full(4, 4), stale=stale, start=0, key=0, budget=3, deeper=0.3)
    SimulatedDrafter(Script(drafts), TABLE, clock).propose([request, request])
    costs = TABLE.drafter
    assert clock() == pytest.approx(costs.call_s + 3 * costs.level_s + 6 * costs.draft_s)


def test_recorded_states_give_their_logits_back_behind_their_own_prefix() -> None:
    recording = Recording()
    target = RecordingTarget(ToyTarget(random_table), recording)
    store = Unit(state=np.array([1, 2, 3, 0]), start=0, pages=(), write=1)
    behind = Unit(state=np.array([4, 0, 4, 4]), start=LENGTH, pages=(1,))
    pages = target.new_pages(2)
    real = evaluate(target, [_unit(4, 4, 0, 1), behind, store], pages, num_states=2)
    replayed = ReplayedTarget(target, recording)
    moved = Unit(state=store.state, start=0, pages=(), write=7)  # in another page
    again = Unit(state=behind.state, start=LENGTH, pages=(7,))
    found = evaluate(replayed, [again, moved], replayed.new_pages(8), num_states=1)
    assert torch.equal(all_of(found.logits), all_of(real.logits)[2:])


def test_a_recorded_drafter_is_asked_once_and_only_for_the_same_roots() -> None:
    drafts = Drafts(np.zeros((1, 4), np.int64), np.ones(1, np.float32), np.ones(1, np.int64))
    stale = Stale(
        log_probs=np.zeros((4, 32), np.float16),
        doubts=np.zeros(4, np.float16),
        tokens=np.zeros((4, 32), np.int64),
        masked=np.ones(4, bool),
    )
    request = DraftRequest(root=np.full(4, 4), stale=stale, start=0, key=0, budget=1)
    record: list[Call] = []
    ReplayedDrafter(Script(drafts), record).propose([request])
    other = Drafts(drafts.states + 1, drafts.masses, drafts.depths)
    replayed = ReplayedDrafter(Script(other), record)
    assert replayed.propose([request])[0] is drafts
    with pytest.raises(AssertionError, match="another run"):
        ReplayedDrafter(Script(other), record).propose([replace(request, root=np.zeros(4, int))])


def test_cells_above_temperature_zero_are_those_at_the_ends() -> None:
    hot = {cell.concurrency for cell in cells() if cell.temperature > 0.0}
    assert hot == {1, 32}
    assert len(cells()) == 16


@pytest.fixture(scope="module")
def bench(workload: Workload) -> Bench:
    return bench_of(workload)


def bench_of(workload: Workload) -> Bench:
    """Its models and prompts, on a clock that stands still unless told otherwise."""
    loaded = load(workload)
    clock: Callable[[], float] = SimulatedClock()
    return Bench(target=loaded.target, requests=loaded.requests, clock=clock)


@pytest.mark.models
@pytest.mark.parametrize("rule", ["strict", "threshold"])
def test_every_policy_on_a_simulated_clock_decodes_the_same_samples(
    workload: Workload, monkeypatch: pytest.MonkeyPatch, rule: Literal["strict", "threshold"]
) -> None:
    monkeypatch.setattr("benchmarks.batching.cells.FEWEST", 2)
    monkeypatch.setattr("benchmarks.batching.streams.FEWEST", {rule: 2})
    cell = Cell(rule=rule, temperature=1.0, concurrency=2)
    workload = replace(workload, num_prompts=prompts_of(cell))
    bench = bench_of(workload)
    rows = simulated_rows([cell], [TABLE], bench=bench, workload=workload, progress=lambda _: None)
    assert [row.policy for row in rows] == ["draft_free", "d8", "d20", "gamma", "auto"]
    assert all(row.identical for row in rows)
    assert all(row.tokens_per_s > 0.0 for row in rows)
    assert rows[0].drafter_share == 0.0 < rows[1].drafter_share


def test_only_close_policies_of_large_batches_above_temperature_zero_have_several_streams() -> None:
    hot = Cell(rule="strict", temperature=1.0, concurrency=32)
    assert [streams_of(hot, policy) for policy in POLICIES] == [4, 1, 1, 1, 4]
    assert prompts_of(hot) == 4 * samples_of(hot)
    for cell in (replace(hot, concurrency=1), replace(hot, temperature=0.0)):
        assert {streams_of(cell, policy) for policy in POLICIES} == {1}


@pytest.mark.models
def test_streams_are_decoded_one_after_another_and_add_up(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.batching.cells.FEWEST", 2)
    monkeypatch.setattr("benchmarks.batching.streams.FEWEST", {"threshold": 2})
    bench = bench_of(replace(workload, num_prompts=4))
    cell = Cell(rule="threshold", temperature=0.0, concurrency=1)

    def run(prompts: slice, num: int) -> Run:
        part = replace(bench, requests=bench.requests[prompts])
        clock = SimulatedClock()
        target = SimulatedTarget(bench.target, TABLE, clock)
        streams = Streams(cell=cell, bench=part, num=num)
        return streams.run(target, clock, drafter=None, budget=fixed("draft_free"))

    both, first, second = run(slice(4), 2), run(slice(2), 1), run(slice(2, 4), 1)
    assert both.seconds == first.seconds + second.seconds  # whatever the clock showed before
    assert both.tokens == first.tokens + second.tokens
    assert both.traces == first.traces + second.traces
    assert both.counters["forwards"] == first.counters["forwards"] + second.counters["forwards"]


@pytest.mark.models
def test_a_replayed_run_is_the_real_one(bench: Bench, workload: Workload) -> None:
    drafter = drafter_for("d8", STRICT.transition, workload, mask_id=bench.target.spec.mask_id)
    runs: list[Run] = []
    for target in (bench.target, replayed_target(bench, STRICT)):
        again = Bench(target=target, requests=bench.requests, clock=bench.clock)
        runs.append(again.run(STRICT, drafter=drafter, budget=fixed("d8")))
    real, replayed = runs
    assert replayed.traces == real.traces
    assert replayed.counters == real.counters


@pytest.mark.models
def test_a_simulated_run_takes_the_same_time_whenever_it_is_made(
    bench: Bench, workload: Workload
) -> None:
    target = replayed_target(bench, STRICT)
    streams = Streams(cell=STRICT, bench=bench)
    seconds = {
        simulated_run("auto", TABLE, target, streams=streams, workload=workload).seconds
        for _ in range(2)
    }
    assert len(seconds) == 1


@pytest.mark.models
def test_shards_are_streamed_to_their_last_row(bench: Bench) -> None:
    clock = SimulatedClock()
    small = Cell(rule="threshold", temperature=0.0, concurrency=2)
    modelled = Bench(
        target=SimulatedTarget(bench.target, TABLE, clock), requests=bench.requests, clock=clock
    )
    ratio = stream_over_single_shard(modelled, num_shards=3, rows=2, cell=small)
    assert 0.5 < ratio <= 1.01


@pytest.mark.models
def test_a_run_in_slices_is_the_whole_run_in_the_same_seconds(workload: Workload) -> None:
    cell = Cell(rule="threshold", temperature=0.0, concurrency=2)

    def begin() -> Decoding:
        ticks = count()
        bench = replace(bench_of(workload), clock=lambda: float(next(ticks)))
        return bench.begin(cell, drafter=None, budget=fixed("draft_free"), num_samples=2)

    whole, sliced, num_slices = begin(), begin(), 0
    whole.advance(float("inf"))
    while sliced.has_work:
        sliced.advance(20.0)
        num_slices += 1
    assert num_slices > 2
    assert sliced.run() == whole.run()
