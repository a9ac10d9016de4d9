"""The batched engine against the reference decoder, on a random target."""

from dataclasses import replace

import pytest

from spot.conditionals import stale_of
from spot.drafters.base import Stale
from spot.targets.base import Conditionals
from spot.targets.paged import PagedTarget
from spot.transition import Rule
from tests.workers.budgets import Whimsical, eager
from tests.workers.engines import (
    GREEDY,
    SAMPLED,
    THRESHOLD,
    L,
    assert_equal,
    decode,
    drafter_of,
    endless_limits,
    finish,
    limits_of,
    make_engine,
    make_requests,
    reference,
)
from workers.budget import Ask, BudgetPolicy, FixedBudget, Root
from workers.costs import ForwardSize
from workers.engine import Engine, EngineSettings
from workers.rounds import FullDrafts


@pytest.mark.parametrize("rule", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize(
    ("batch", "budget"),
    [(1, FixedBudget(5)), (3, None), (3, FixedBudget(20)), (8, Whimsical()), (8, eager(L))],
    ids=["1-5", "3-0", "3-20", "8-whimsical", "8-auto"],
)
def test_the_engine_equals_the_reference_commit_by_commit(
    target: PagedTarget, rule: Rule, batch: int, budget: BudgetPolicy | None
) -> None:
    requests = make_requests(samples=2)
    results = decode(make_engine(target, rule=rule, batch=batch, budget=budget), requests)
    for request in requests:
        assert_equal(results[request.row, request.sample], reference(target, request, rule))


def test_drafts_look_through_to_the_next_block_without_changing_anything(
    target: PagedTarget,
) -> None:
    requests = make_requests(max_tokens=40)
    with_it = decode(make_engine(target, budget=FixedBudget(60)), requests)
    without = decode(make_engine(target, budget=FixedBudget(60), full_drafts="drop"), requests)
    for request in requests:
        assert_equal(with_it[request.row, 0], reference(target, request, GREEDY))
    assert sum(r.nfe for r in with_it.values()) < sum(r.nfe for r in without.values())


@pytest.mark.parametrize("rule", [SAMPLED, THRESHOLD], ids=["strict", "threshold"])
@pytest.mark.parametrize(
    ("full_drafts", "fused_store", "padded"),
    [("look_through", True, True), ("reuse", True, False), ("drop", False, False)],
)
def test_what_becomes_of_full_drafts_stores_and_padding_changes_nothing(
    target: PagedTarget, rule: Rule, full_drafts: FullDrafts, fused_store: bool, padded: bool
) -> None:
    engine = make_engine(
        target,
        rule=rule,
        budget=FixedBudget(6),
        full_drafts=full_drafts,
        fused_store=fused_store,
        padded=padded,
    )
    results = decode(engine, make_requests())
    for request in make_requests():
        assert_equal(results[request.row, 0], reference(target, request, rule))


def test_a_threshold_transition_may_commit_several_tokens(target: PagedTarget) -> None:
    results = decode(make_engine(target, rule=THRESHOLD), make_requests())
    assert any(r.trace and r.transitions < len(r.trace.tokens) for r in results.values())
    assert all(r.trace and r.transitions == 1 + max(r.trace.steps) for r in results.values())


def test_unfused_stores_are_forwards_of_their_own(target: PagedTarget) -> None:
    request = make_requests(max_tokens=4 * L)[1]  # ends three blocks after its first one
    fused = decode(make_engine(target), [request])[1, 0]
    apart = decode(make_engine(target, full_drafts="drop", fused_store=False), [request])[1, 0]
    blocks = len({p // L for p in apart.trace.positions}) if apart.trace else 0
    assert (fused.nfe_store, apart.nfe_store) == (0, blocks - 1)
    assert apart.nfe == fused.nfe


def test_a_padded_forward_has_one_size_whatever_was_drafted(target: PagedTarget) -> None:
    engine = make_engine(target, budget=FixedBudget(9), full_drafts="drop", padded=True)
    engine.add(make_requests()[0])
    sizes, before, opened = set(), 0, 0
    while engine.has_work():
        engine.step()
        positions = engine.counters()["positions"]
        if positions - before > 2 * L:  # not an opening with a store at most
            sizes.add(positions - before)
        else:
            opened += 1
        before = positions
    assert sizes == {10 * L}
    assert opened == 2


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ValueError, match="only with fused stores"):
        EngineSettings(rule=GREEDY, batch=1, num_pages=1, fused_store=False)
    with pytest.raises(ValueError, match="strict rule only"):
        EngineSettings(rule=THRESHOLD, batch=1, num_pages=1, verifier="rejection")


def test_rounds_and_accepted_drafts_are_counted_by_block_of_the_output(
    target: PagedTarget,
) -> None:
    engine = make_engine(target, rule=SAMPLED, budget=FixedBudget(6))
    results = decode(engine, make_requests()).values()
    counted = {name: n for name, n in engine.counters().items() if name.startswith("block:")}
    for what in ("rounds", "accepted"):
        by_block = [n for name, n in counted.items() if name.endswith(what)]
        assert sum(by_block) == sum(getattr(result, what) for result in results)
        assert len(by_block) > 1


def test_equal_states_of_several_samples_are_evaluated_once(target: PagedTarget) -> None:
    one, three = make_engine(target), make_engine(target)
    decode(one, [r for r in make_requests() if r.row == 4])
    decode(three, [r for r in make_requests(samples=3) if r.row == 4])
    assert three.counters()["positions"] == one.counters()["positions"]


def test_a_finished_samples_slot_is_taken_while_others_go_on(target: PagedTarget) -> None:
    budgets = (2, 40, 2, 2)
    requests = [
        replace(make_requests()[0], row=row, max_tokens=num) for row, num in enumerate(budgets)
    ]
    settings = EngineSettings(rule=GREEDY, batch=2, num_pages=80)
    engine = Engine(target, settings=settings, limits=endless_limits, budget=FixedBudget(0))
    assert [row for row, _ in decode(engine, requests)] == [0, 2, 3, 1]


def test_an_aborted_shard_leaves_the_others_alone(target: PagedTarget) -> None:
    engine = make_engine(target, batch=8, budget=FixedBudget(4))
    for request in make_requests():
        engine.add(request)
    for _ in range(3):
        engine.step()
    engine.abort(0)
    engine.check()
    results = finish(engine)
    assert {row for row, _ in results} == {1, 3}
    for request in make_requests():
        if request.shard == 1:
            assert_equal(results[request.row, 0], reference(target, request, GREEDY))


def test_an_engine_says_where_its_time_went(target: PagedTarget) -> None:
    ticks = iter(range(10**9))
    engine = Engine(
        target,
        settings=EngineSettings(rule=GREEDY, batch=2, num_pages=80),
        limits=limits_of,
        drafter=drafter_of(GREEDY),
        budget=FixedBudget(3),
        clock=lambda: float(next(ticks)),
    )
    decode(engine, make_requests())
    spent = engine.counters()
    assert spent["target_us"] == 1_000_000 * spent["forwards"]  # a tick each
    assert 0 < spent["drafter_us"] <= spent["target_us"]
    assert spent["host_us"] > 0


def test_a_policy_that_is_shut_is_not_asked(target: PagedTarget) -> None:
    class Shut(FixedBudget):
        def is_shut(self, masked: list[int], *, num_sequences: int) -> bool:
            assert 0 < len(masked) <= num_sequences
            assert all(0 < n <= target.spec.block_length for n in masked)
            return True

    engine = make_engine(target, budget=Shut(3))
    decode(engine, make_requests())
    assert engine.counters()["drafts"] == 0


def test_stale_conditionals_are_kept_only_for_roots_that_may_draft(
    target: PagedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shut(FixedBudget):
        def ask(self, roots: list[Root], *, base: ForwardSize, num_sequences: int) -> list[Ask]:
            return [Ask(3 if root.name[1] == 0 else 0) for root in roots]

    kept: list[int] = []

    def counted(conditionals: Conditionals, states: list[int]) -> list[Stale]:
        kept.append(len(states))
        return stale_of(conditionals, states)

    monkeypatch.setattr("workers.drafting.stale_of", counted)
    decode(make_engine(target, budget=Shut(0)), make_requests())
    assert max(kept) == 1
