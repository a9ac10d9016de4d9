"""The batched engine of bidirectional targets against its reference decoder."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from spot.conditionals import stale_of
from spot.drafters.base import Stale
from spot.drafters.stale_rule import StaleRuleDrafter
from spot.targets.base import (
    CacheContext,
    Conditionals,
)
from spot.targets.canvas import NativeCanvasTarget
from spot.targets.family import DtypeName
from spot.transition import Rule
from tests.checkpoints import FamilyName, write_released
from tests.spot.hostile import Hostile
from tests.spot.lineup import make_drafter
from tests.spot.toy import LENGTH, MASK_ID, VOCAB_ROWS, mixed_table
from tests.spot.toy_canvas import ToyCanvas
from tests.workers.budgets import Whimsical, eager
from tests.workers.canvas_engines import (
    CONTEXTS,
    RULES,
    assert_equal,
    endless_limits,
    finish,
    limits_of,
    make_engine,
    make_requests,
    reference,
)
from workers.budget import Ask, BudgetPolicy, FixedBudget, Root, Spent
from workers.canvas_engine import CanvasEngine, CanvasSettings
from workers.costs import ForwardSize
from workers.samples import SampleRequest


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r.name}-{r.temperature:g}")
def test_a_mixed_batch_decodes_each_sample_as_if_it_were_alone_and_undrafted(
    rule: Rule, context: CacheContext
) -> None:
    target, requests = ToyCanvas(mixed_table), make_requests(LENGTH, num_ids=3)
    free = {r.row: reference(target, r, rule=rule, context=context) for r in requests}
    moves = {r.key: free[r.row].trajectory.moves for r in requests}
    drafters = (
        None,
        StaleRuleDrafter(rule=rule, mask_id=MASK_ID),
        make_drafter("joint", rule=rule, moves=moves),
        Hostile(9, mask_id=MASK_ID, num_tokens=VOCAB_ROWS),
    )
    for drafter in drafters:
        engine = make_engine(target, rule=rule, context=context, drafter=drafter)
        results = finish(engine, requests)
        for row, decoded in free.items():
            assert_equal(results[row], decoded)
        drafted = sum(r.drafted for r in results.values())
        assert (drafted > 0) == (drafter is not None)
        assert engine.counters()["accepted"] == sum(r.accepted for r in results.values())


@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r.name}-{r.temperature:g}")
@pytest.mark.parametrize("budget", [Whimsical, lambda: eager(LENGTH)], ids=["whimsical", "auto"])
def test_no_budget_changes_tokens_or_their_order(
    rule: Rule, budget: Callable[[], BudgetPolicy]
) -> None:
    target, requests = ToyCanvas(mixed_table), make_requests(LENGTH, num_ids=3)
    drafter = StaleRuleDrafter(rule=rule, mask_id=MASK_ID)
    engine = make_engine(target, rule=rule, batch=4, drafter=drafter, budget=budget())
    results = finish(engine, requests)
    for request in requests:
        decoded = reference(target, request, rule=rule, context="prefix")
        assert_equal(results[request.row], decoded)
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
    requests = make_requests(8, num_ids=256)[::2]
    engine = make_engine(
        target, rule=rule, context="prefix+suffix", drafter=drafter, budget=Whimsical()
    )
    results = finish(engine, requests)
    for request in requests:
        decoded = reference(target, request, rule=rule, context="prefix+suffix")
        assert_equal(results[request.row], decoded)


def test_costs_are_those_of_the_reference_without_drafts() -> None:
    target, rule = ToyCanvas(mixed_table), Rule()
    requests = make_requests(LENGTH, num_ids=3)
    engine = make_engine(target, rule=rule)
    results = finish(engine, requests)
    for request in requests:
        cost = reference(target, request, rule=rule, context="prefix").trajectory.cost
        result = results[request.row]
        assert (result.nfe, result.positions) == (cost.nfe, cost.positions)
        assert (result.nfe_prefill, result.nfe_store) == (0, 0)
    assert engine.counters()["positions"] == sum(r.positions for r in results.values())


def test_canvases_are_opened_together_and_states_share_forwards() -> None:
    target, rule = ToyCanvas(mixed_table), Rule()
    requests = make_requests(LENGTH, num_ids=3)
    engine = make_engine(target, rule=rule, batch=len(requests))
    finish(engine, requests)
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
    first = make_requests(LENGTH, num_ids=3)[2]
    samples = [replace(first, row=n, key=n) for n in range(4)]
    results = finish(make_engine(target, rule=rule, batch=4), samples)
    assert len(target.opening_forwards[0]) == 1
    assert max(len(units) for units in target.forwards) > 1
    for request in samples:
        decoded = reference(target, request, rule=rule, context="prefix")
        assert_equal(results[request.row], decoded)
        assert results[request.row].positions == decoded.trajectory.cost.positions
    greedy = ToyCanvas(mixed_table)
    finish(make_engine(greedy, rule=Rule(), batch=4), samples)
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
    engine = make_engine(ToyCanvas(mixed_table), rule=rule, drafter=drafter, budget=Shut(0))
    finish(engine, make_requests(LENGTH, num_ids=3))
    assert max(kept) == 1


def test_a_policy_is_told_of_states_and_not_of_openings() -> None:
    seen: list[Spent] = []

    class Noting(FixedBudget):
        def observe(self, spent: Spent) -> None:
            seen.append(spent)

    ticks = itertools.count()
    target, rule = ToyCanvas(mixed_table), Rule()
    drafter = StaleRuleDrafter(rule=rule, mask_id=MASK_ID)
    engine = make_engine(
        target,
        rule=rule,
        drafter=drafter,
        budget=Noting(5),
        clock=lambda: float(next(ticks)),
    )
    finish(engine, make_requests(LENGTH, num_ids=3))
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
    finish(make_engine(target, rule=rule, drafter=drafter), make_requests(LENGTH, num_ids=3))
    for units in target.forwards:
        names = [(id(unit.opened), unit.state.tobytes()) for unit in units]
        assert len(set(names)) == len(names)


def test_a_finished_samples_slot_is_taken_while_others_go_on() -> None:
    target, first = ToyCanvas(mixed_table), make_requests(LENGTH, num_ids=3)[0]
    budgets = (1, 6 * LENGTH, 1, 1)
    requests = [replace(first, row=row, max_tokens=num) for row, num in enumerate(budgets)]
    settings = CanvasSettings(rule=Rule(), context="prefix", batch=2)
    engine = CanvasEngine(target, settings=settings, limits=endless_limits, budget=FixedBudget(0))
    assert list(finish(engine, requests)) == [0, 2, 3, 1]


def test_an_aborted_shard_leaves_the_others_alone() -> None:
    target, rule = ToyCanvas(mixed_table), Rule()
    requests = make_requests(LENGTH, num_ids=3)
    engine = make_engine(target, rule=rule, batch=2)
    for request in requests:
        engine.add(request)
    engine.step()
    engine.abort(0)
    results = finish(engine, [])
    assert set(results) == {1, 3}
    for row in (1, 3):
        assert_equal(results[row], reference(target, requests[row], rule=rule, context="prefix"))


def test_rows_have_temperatures_of_their_own() -> None:
    target, request = ToyCanvas(mixed_table), make_requests(LENGTH, num_ids=3)[4]
    warm = SampleRequest(
        shard=0,
        row=0,
        sample=0,
        prompt_ids=request.prompt_ids,
        key=request.key,
        max_tokens=request.max_tokens,
        temperature=1.5,
    )
    (result,) = finish(make_engine(target, rule=Rule()), [warm]).values()
    assert_equal(result, reference(target, warm, rule=Rule(temperature=1.5), context="prefix"))


def test_an_observer_sees_every_walk_with_fresh_conditionals() -> None:
    seen: list[tuple[int, int]] = []

    class Watching:
        """Notes where each walk began."""

        walked: Callable[..., None]

        def __init__(self) -> None:
            self.walked = lambda entry, made, fresh: seen.append(
                (entry.sequence.start, int(fresh.masked.sum()))
            )

    target, request = ToyCanvas(mixed_table), make_requests(LENGTH, num_ids=3)[1]
    settings = CanvasSettings(rule=Rule(), context="prefix", batch=1)
    engine = CanvasEngine(
        target, settings=settings, limits=limits_of, budget=FixedBudget(0), observer=Watching()
    )
    (result,) = finish(engine, [request]).values()
    assert len(seen) == result.transitions
    first = len(request.prompt_ids)
    assert {(start - first) % LENGTH for start, _ in seen} == {0}
    assert seen[:2] == [(first, LENGTH), (first, LENGTH - 1)]
