"""The batched engine of bidirectional targets against its reference decoder."""

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spot.canvas_decoder import CanvasDecoder
from spot.conditionals import stale_of
from spot.drafters.base import Drafter, Stale
from spot.drafters.stale_rule import StaleRuleDrafter
from spot.limits import Limits
from spot.rounds import Sample
from spot.targets.base import (
    CacheContext,
    Canvas,
    CanvasTarget,
    CanvasUnit,
    Conditionals,
    Opened,
)
from spot.targets.canvas import NativeCanvasTarget
from spot.targets.family import DtypeName
from spot.trajectory import Decoded
from spot.transition import Rule
from tests.checkpoints import FamilyName, write_released
from tests.spot.hostile import Hostile
from tests.spot.lineup import make_drafter
from tests.spot.toy import LENGTH, MASK_ID, VOCAB_ROWS, mixed_table
from tests.spot.toy_canvas import ToyCanvas
from tests.workers.budgets import Whimsical, eager
from workers.budget import Ask, BudgetPolicy, FixedBudget, Root, Spent
from workers.canvas_engine import CanvasEngine, CanvasSettings
from workers.canvas_forwarding import in_forwards
from workers.costs import ForwardSize
from workers.samples import SampleRequest, SampleResult

CONTEXTS: tuple[CacheContext, ...] = ("prefix", "prefix+suffix")
RULES = (
    Rule(),
    Rule(temperature=1.0),
    Rule(name="threshold", tau=0.8, temperature=1.0),
    Rule(name="low_confidence_dynamic", tau=0.8, temperature=1.0),
)
STOP = 3


def _limits(request: SampleRequest) -> Limits:
    return Limits(
        prompt_tokens=len(request.prompt_ids),
        max_tokens=request.max_tokens,
        stop_ids=frozenset({STOP}),
    )


def _endless(request: SampleRequest) -> Limits:
    return replace(_limits(request), stop_ids=frozenset())


def _requests(length: int, *, num_ids: int) -> list[SampleRequest]:
    """Prompts of every edge length, with budgets of their own, on two shards."""
    lengths = (1, length - 1, length, length + 1, 2 * length - 1)
    return [
        SampleRequest(
            shard=row % 2,
            row=row,
            sample=0,
            prompt_ids=tuple((row + 5 * p) % num_ids for p in range(num_prompt)),
            key=2**63 * (row % 2) + 100 + row,
            max_tokens=length + 1 + row,
        )
        for row, num_prompt in enumerate(lengths)
    ]


def _engine(
    target: CanvasTarget,
    *,
    rule: Rule,
    context: CacheContext = "prefix",
    batch: int = 3,
    drafter: Drafter | None = None,
    budget: BudgetPolicy | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> CanvasEngine:
    settings = CanvasSettings(rule=rule, context=context, batch=batch, traced=True)
    return CanvasEngine(
        target,
        settings=settings,
        limits=_limits,
        drafter=drafter,
        budget=budget or FixedBudget(5),
        clock=clock,
    )


def _finish(engine: CanvasEngine, requests: list[SampleRequest]) -> dict[int, SampleResult]:
    for request in requests:
        engine.add(request)
    results = []
    while engine.has_work():
        results += engine.step()
    return {r.request.row: r for r in results}


def _reference(
    target: CanvasTarget, request: SampleRequest, *, rule: Rule, context: CacheContext
) -> Decoded:
    sample = Sample(prompt_ids=request.prompt_ids, key=request.key, limits=_limits(request))
    return CanvasDecoder(target, rule=rule, context=context).decode(sample)


def _assert_equal(result: SampleResult, decoded: Decoded) -> None:
    commits, trace = decoded.trajectory.commits, result.trace
    assert trace is not None
    assert (result.token_ids, result.finish_reason) == decoded[:2]
    assert trace.positions == tuple(c.position for c in commits)
    assert trace.tokens == tuple(c.token for c in commits)
    assert trace.steps == tuple(decoded.trajectory.steps)
    assert trace.confidences == tuple(c.confidence for c in commits)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r.name}-{r.temperature:g}")
def test_a_mixed_batch_decodes_each_sample_as_if_it_were_alone_and_undrafted(
    rule: Rule, context: CacheContext
) -> None:
    target, requests = ToyCanvas(mixed_table), _requests(LENGTH, num_ids=3)
    free = {r.row: _reference(target, r, rule=rule, context=context) for r in requests}
    moves = {r.key: free[r.row].trajectory.moves for r in requests}
    drafters = (
        None,
        StaleRuleDrafter(rule=rule, mask_id=MASK_ID),
        make_drafter("joint", rule=rule, moves=moves),
        Hostile(9, mask_id=MASK_ID, num_tokens=VOCAB_ROWS),
    )
    for drafter in drafters:
        engine = _engine(target, rule=rule, context=context, drafter=drafter)
        results = _finish(engine, requests)
        for row, decoded in free.items():
            _assert_equal(results[row], decoded)
        drafted = sum(r.drafted for r in results.values())
        assert (drafted > 0) == (drafter is not None)
        assert engine.counters()["accepted"] == sum(r.accepted for r in results.values())


@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r.name}-{r.temperature:g}")
@pytest.mark.parametrize("budget", [Whimsical, lambda: eager(LENGTH)], ids=["whimsical", "auto"])
def test_no_budget_changes_tokens_or_their_order(
    rule: Rule, budget: Callable[[], BudgetPolicy]
) -> None:
    target, requests = ToyCanvas(mixed_table), _requests(LENGTH, num_ids=3)
    drafter = StaleRuleDrafter(rule=rule, mask_id=MASK_ID)
    engine = _engine(target, rule=rule, batch=4, drafter=drafter, budget=budget())
    results = _finish(engine, requests)
    for request in requests:
        decoded = _reference(target, request, rule=rule, context="prefix")
        _assert_equal(results[request.row], decoded)
    assert engine.counters()["drafts"] > 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("family", ["llada", "dream"])
def test_a_real_layouts_batch_is_bit_equal_to_single_samples(
    tmp_path: Path, family: FamilyName, dtype: DtypeName
) -> None:
    torch.set_num_threads(1)
    directory = write_released(family, tmp_path / family)
    target = NativeCanvasTarget.load(directory, block_length=8, dtype=dtype)
    rule = Rule(temperature=1.0)
    drafter = StaleRuleDrafter(rule=rule, mask_id=target.spec.mask_id)
    requests = _requests(8, num_ids=256)[::2]
    engine = _engine(
        target, rule=rule, context="prefix+suffix", drafter=drafter, budget=Whimsical()
    )
    results = _finish(engine, requests)
    for request in requests:
        decoded = _reference(target, request, rule=rule, context="prefix+suffix")
        _assert_equal(results[request.row], decoded)


def test_costs_are_those_of_the_reference_without_drafts() -> None:
    target, rule = ToyCanvas(mixed_table), Rule()
    requests = _requests(LENGTH, num_ids=3)
    engine = _engine(target, rule=rule)
    results = _finish(engine, requests)
    for request in requests:
        cost = _reference(target, request, rule=rule, context="prefix").trajectory.cost
        result = results[request.row]
        assert (result.nfe, result.positions) == (cost.nfe, cost.positions)
        assert (result.nfe_prefill, result.nfe_store) == (0, 0)
    assert engine.counters()["positions"] == sum(r.positions for r in results.values())


def test_canvases_are_opened_together_and_states_share_forwards() -> None:
    target, rule = ToyCanvas(mixed_table), Rule()
    requests = _requests(LENGTH, num_ids=3)
    engine = _engine(target, rule=rule, batch=len(requests))
    _finish(engine, requests)
    num_blocks = max(-(-r.max_tokens // LENGTH) for r in requests)
    assert len(target.opening_forwards) <= num_blocks  # one transition a round: all keep step
    assert len(target.opening_forwards[0]) == len(requests)
    assert engine.counters()["openings"] == len(target.openings)
    assert len({(c.tobytes(), start) for c, start in target.openings}) == len(target.openings)
    assert max(len(units) for units in target.forwards) == len(requests)
    num_forwards = len(target.opening_forwards) + len(target.forwards)
    assert engine.counters()["forwards"] == num_forwards


def test_samples_of_one_row_share_what_they_have_in_common() -> None:
    target, rule = ToyCanvas(mixed_table), Rule(temperature=1.0)
    first = _requests(LENGTH, num_ids=3)[2]
    samples = [replace(first, row=n, key=n) for n in range(4)]
    results = _finish(_engine(target, rule=rule, batch=4), samples)
    assert len(target.opening_forwards[0]) == 1
    assert max(len(units) for units in target.forwards) > 1
    for request in samples:
        decoded = _reference(target, request, rule=rule, context="prefix")
        _assert_equal(results[request.row], decoded)
        assert results[request.row].positions == decoded.trajectory.cost.positions
    greedy = ToyCanvas(mixed_table)
    _finish(_engine(greedy, rule=Rule(), batch=4), samples)
    assert {len(canvases) for canvases in greedy.opening_forwards} == {1}
    assert {len(units) for units in greedy.forwards} == {1}


def test_stale_conditionals_are_kept_only_for_roots_that_may_draft(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Shut(FixedBudget):
        def ask(self, roots: list[Root], *, base: ForwardSize, num_sequences: int) -> list[Ask]:
            assert [root.room for root in roots] == [root.masked - 1 for root in roots]
            assert float(base.positions) == LENGTH * num_sequences == LENGTH * len(roots)
            return [Ask(3 if root.name[1] == 0 else 0) for root in roots]

    kept: list[int] = []

    def counted(conditionals: Conditionals, states: list[int]) -> list[Stale]:
        kept.append(len(states))
        return stale_of(conditionals, states)

    monkeypatch.setattr("workers.drafting.stale_of", counted)
    rule = Rule()
    drafter = StaleRuleDrafter(rule=rule, mask_id=MASK_ID)
    engine = _engine(ToyCanvas(mixed_table), rule=rule, drafter=drafter, budget=Shut(0))
    _finish(engine, _requests(LENGTH, num_ids=3))
    assert max(kept) == 1


def test_a_policy_is_told_of_states_and_not_of_openings() -> None:
    seen: list[Spent] = []

    class Noting(FixedBudget):
        def observe(self, spent: Spent) -> None:
            seen.append(spent)

    ticks = itertools.count()
    target, rule = ToyCanvas(mixed_table), Rule()
    drafter = StaleRuleDrafter(rule=rule, mask_id=MASK_ID)
    engine = _engine(
        target,
        rule=rule,
        drafter=drafter,
        budget=Noting(5),
        clock=lambda: float(next(ticks)),
    )
    _finish(engine, _requests(LENGTH, num_ids=3))
    units = [len(units) for units in target.forwards]
    assert [spent.size.positions for spent in seen] == [LENGTH * num for num in units]
    pairs = [
        sum(LENGTH * (u.opened.keys[0].shape[1] + LENGTH) for u in units)
        for units in target.forwards
    ]
    assert [spent.size.pairs for spent in seen] == pairs
    assert {spent.target_s for spent in seen} == {1.0}  # a tick each
    spent = engine.counters()
    assert spent["drafts"] == sum(len(s.masses) for s in seen)
    assert spent["accepted"] == sum(int(s.accepted.sum()) for s in seen) > 0
    num_rounds = spent["target_us"] // 2_000_000  # every round times openings and states
    assert num_rounds >= len(seen)


def test_equal_drafts_of_a_sample_are_evaluated_once() -> None:
    target, rule = ToyCanvas(mixed_table), Rule(temperature=1.0)
    drafter = Hostile(2, mask_id=MASK_ID, num_tokens=VOCAB_ROWS)
    _finish(_engine(target, rule=rule, drafter=drafter), _requests(LENGTH, num_ids=3))
    for units in target.forwards:
        names = [(id(unit.opened), unit.state.tobytes()) for unit in units]
        assert len(set(names)) == len(names)


def test_a_finished_samples_slot_is_taken_while_others_go_on() -> None:
    target, first = ToyCanvas(mixed_table), _requests(LENGTH, num_ids=3)[0]
    budgets = (1, 6 * LENGTH, 1, 1)
    requests = [replace(first, row=row, max_tokens=num) for row, num in enumerate(budgets)]
    settings = CanvasSettings(rule=Rule(), context="prefix", batch=2)
    engine = CanvasEngine(target, settings=settings, limits=_endless, budget=FixedBudget(0))
    assert list(_finish(engine, requests)) == [0, 2, 3, 1]


def test_an_aborted_shard_leaves_the_others_alone() -> None:
    target, rule = ToyCanvas(mixed_table), Rule()
    requests = _requests(LENGTH, num_ids=3)
    engine = _engine(target, rule=rule, batch=2)
    for request in requests:
        engine.add(request)
    engine.step()
    engine.abort(0)
    results = _finish(engine, [])
    assert set(results) == {1, 3}
    for row in (1, 3):
        _assert_equal(results[row], _reference(target, requests[row], rule=rule, context="prefix"))


class Small(ToyCanvas):
    """Takes no more than two states, or 40 positions of canvases, at once."""

    def open(self, canvases: list[Canvas], *, context: CacheContext) -> list[Opened]:
        if sum(len(canvas.tokens) for canvas in canvases) > 40:
            raise MemoryError
        return super().open(canvases, context=context)

    def hidden(self, units: list[CanvasUnit]) -> torch.Tensor:
        if len(units) > 2:
            raise MemoryError
        return super().hidden(units)


def test_out_of_memory_halves_a_forward_and_changes_nothing() -> None:
    rule, requests = Rule(temperature=1.0), _requests(LENGTH, num_ids=3)
    target = Small(mixed_table)
    drafter = StaleRuleDrafter(rule=rule, mask_id=MASK_ID)
    engine = _engine(target, rule=rule, batch=5, drafter=drafter)
    results = _finish(engine, requests)
    assert 2 < engine.counters()["out_of_memory"] < 8  # it is remembered
    assert max(map(len, target.opening_forwards)) == 3  # of five
    for request in requests:
        decoded = _reference(ToyCanvas(mixed_table), request, rule=rule, context="prefix")
        _assert_equal(results[request.row], decoded)


def test_a_canvas_that_does_not_fit_alone_is_raised() -> None:
    engine = _engine(Small(mixed_table), rule=Rule())
    engine.add(replace(_requests(LENGTH, num_ids=3)[0], max_tokens=50))
    with pytest.raises(MemoryError):
        engine.step()


def test_openings_are_cut_up_by_positions_and_a_long_canvas_goes_alone() -> None:
    canvases = [Canvas(np.zeros(num, np.int64), 0) for num in (5, 5, 30, 2, 9)]
    parts = in_forwards(canvases, most=12)
    assert [[len(c.tokens) for c in part] for part in parts] == [[5, 5], [30], [2, 9]]
    assert in_forwards([], most=12) == []


def test_what_is_not_for_want_of_memory_is_raised() -> None:
    class Broken(ToyCanvas):
        def hidden(self, units: list[CanvasUnit]) -> torch.Tensor:
            raise RuntimeError("broken")

    engine = _engine(Broken(mixed_table), rule=Rule())
    engine.add(_requests(LENGTH, num_ids=3)[0])
    engine.step()
    with pytest.raises(RuntimeError, match="broken"):
        engine.step()


def test_rows_have_temperatures_of_their_own() -> None:
    target, request = ToyCanvas(mixed_table), _requests(LENGTH, num_ids=3)[4]
    warm = SampleRequest(
        shard=0,
        row=0,
        sample=0,
        prompt_ids=request.prompt_ids,
        key=request.key,
        max_tokens=request.max_tokens,
        temperature=1.5,
    )
    (result,) = _finish(_engine(target, rule=Rule()), [warm]).values()
    _assert_equal(result, _reference(target, warm, rule=Rule(temperature=1.5), context="prefix"))


def test_an_observer_sees_every_walk_with_fresh_conditionals() -> None:
    seen: list[tuple[int, int]] = []

    class Watching:
        """Notes where each walk began."""

        walked: Callable[..., None]

        def __init__(self) -> None:
            self.walked = lambda entry, made, fresh: seen.append(
                (entry.sequence.start, int(fresh.masked.sum()))
            )

    target, request = ToyCanvas(mixed_table), _requests(LENGTH, num_ids=3)[1]
    settings = CanvasSettings(rule=Rule(), context="prefix", batch=1)
    engine = CanvasEngine(
        target, settings=settings, limits=_limits, budget=FixedBudget(0), observer=Watching()
    )
    (result,) = _finish(engine, [request]).values()
    assert len(seen) == result.transitions
    first = len(request.prompt_ids)
    assert {(start - first) % LENGTH for start, _ in seen} == {0}
    assert seen[:2] == [(first, LENGTH), (first, LENGTH - 1)]
