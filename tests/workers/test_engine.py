"""The batched engine against the reference decoder, on a random target."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import workers.engine
import workers.rounds
from spot.attention import KVPages
from spot.conditionals import stale_of
from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.base import Stale
from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.order_model import OrderModel
from spot.drafters.spot import SpotDrafter
from spot.limits import Limits
from spot.targets.base import Conditionals, Unit
from spot.targets.paged import PagedTarget
from spot.trajectory import Decoded
from spot.transition import Rule
from tests.twins import BLOCK_LENGTH, MASK_ID, PAD_ID, STOP_ID, write_sdar_twin
from tests.workers.budgets import Whimsical, eager
from workers.budget import Ask, BudgetPolicy, FixedBudget, Root
from workers.costs import ForwardSize
from workers.engine import Engine, EngineSettings
from workers.rounds import FullDrafts
from workers.samples import SampleRequest, SampleResult

L = BLOCK_LENGTH
LENGTHS = (1, L - 1, L, L + 1, 3 * L + 2)
GREEDY, SAMPLED = Rule(), Rule(temperature=1.0, top_p=0.9)
THRESHOLD = Rule(name="threshold", tau=0.05, temperature=1.0)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> PagedTarget:
    torch.set_num_threads(1)
    return PagedTarget.load(write_sdar_twin(Path(tmp_path_factory.mktemp("twin"))))


def _limits(request: SampleRequest) -> Limits:
    return Limits(
        prompt_tokens=len(request.prompt_ids),
        max_tokens=request.max_tokens,
        stop_ids=frozenset({STOP_ID, PAD_ID}),
    )


def _requests(*, samples: int = 1, max_tokens: int = 14) -> list[SampleRequest]:
    rng = np.random.default_rng(5)
    prompts = [tuple(int(i) for i in rng.integers(0, 256, n)) for n in LENGTHS]
    return [
        SampleRequest(
            shard=row % 2,
            row=row,
            sample=sample,
            prompt_ids=prompt,
            key=2**63 * (row % 2) + 100 * row + sample,  # keys have 64 bits
            max_tokens=max_tokens,
        )
        for row, prompt in enumerate(prompts)
        for sample in range(samples)
    ]


def _drafter(rule: Rule) -> SpotDrafter:
    torch.manual_seed(0)
    shape = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)
    return SpotDrafter(OrderModel(shape).eval(), rule=rule, mask_id=MASK_ID)


def _endless(request: SampleRequest) -> Limits:
    return replace(_limits(request), stop_ids=frozenset())


def _engine(
    target: PagedTarget,
    *,
    rule: Rule = GREEDY,
    batch: int = 3,
    num_pages: int = 80,
    budget: BudgetPolicy | None = None,
    full_drafts: FullDrafts = "look_through",
    fused_store: bool = True,
    padded: bool = False,
) -> Engine:
    settings = EngineSettings(
        rule=rule,
        batch=batch,
        num_pages=num_pages,
        traced=True,
        full_drafts=full_drafts,
        fused_store=fused_store,
        padded=padded,
    )
    return Engine(
        target,
        settings=settings,
        limits=_limits,
        drafter=None if budget is None else _drafter(rule),
        budget=budget or FixedBudget(0),
    )


def _finish(engine: Engine) -> dict[tuple[int, int], SampleResult]:
    """Run to the end, checking every invariant after each round."""
    results = []
    while engine.has_work():
        results += engine.step()
        engine.check()
    return {(r.request.row, r.request.sample): r for r in results}


def _decode(engine: Engine, requests: list[SampleRequest]) -> dict[tuple[int, int], SampleResult]:
    for request in requests:
        engine.add(request)
    return _finish(engine)


def _reference(target: PagedTarget, request: SampleRequest, rule: Rule) -> Decoded:
    sample = Sample(prompt_ids=request.prompt_ids, key=request.key, limits=_limits(request))
    return ReferenceDecoder(target, rule=rule).decode(sample)


def _assert_equal(result: SampleResult, decoded: Decoded) -> None:
    commits = decoded.trajectory.commits
    assert result.trace is not None
    assert result.token_ids == decoded.token_ids
    assert result.finish_reason == decoded.finish_reason
    assert result.trace.positions == tuple(c.position for c in commits)
    assert result.trace.tokens == tuple(c.token for c in commits)
    assert result.trace.steps == tuple(decoded.trajectory.steps)
    assert result.trace.confidences == tuple(c.confidence for c in commits)
    assert result.trace.log_probabilities == tuple(c.log_probability for c in commits)


@pytest.mark.parametrize("rule", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize(
    ("batch", "budget"),
    [(1, FixedBudget(5)), (3, None), (3, FixedBudget(20)), (8, Whimsical()), (8, eager(L))],
    ids=["1-5", "3-0", "3-20", "8-whimsical", "8-auto"],
)
def test_the_engine_equals_the_reference_commit_by_commit(
    target: PagedTarget, rule: Rule, batch: int, budget: BudgetPolicy | None
) -> None:
    requests = _requests(samples=2)
    results = _decode(_engine(target, rule=rule, batch=batch, budget=budget), requests)
    for request in requests:
        _assert_equal(results[request.row, request.sample], _reference(target, request, rule))


def test_drafts_look_through_to_the_next_block_without_changing_anything(
    target: PagedTarget,
) -> None:
    requests = _requests(max_tokens=40)
    with_it = _decode(_engine(target, budget=FixedBudget(60)), requests)
    without = _decode(_engine(target, budget=FixedBudget(60), full_drafts="drop"), requests)
    for request in requests:
        _assert_equal(with_it[request.row, 0], _reference(target, request, GREEDY))
    assert sum(r.nfe for r in with_it.values()) < sum(r.nfe for r in without.values())


@pytest.mark.parametrize("rule", [SAMPLED, THRESHOLD], ids=["strict", "threshold"])
@pytest.mark.parametrize(
    ("full_drafts", "fused_store", "padded"),
    [("look_through", True, True), ("reuse", True, False), ("drop", False, False)],
)
def test_what_becomes_of_full_drafts_stores_and_padding_changes_nothing(
    target: PagedTarget, rule: Rule, full_drafts: FullDrafts, fused_store: bool, padded: bool
) -> None:
    engine = _engine(
        target,
        rule=rule,
        budget=FixedBudget(6),
        full_drafts=full_drafts,
        fused_store=fused_store,
        padded=padded,
    )
    results = _decode(engine, _requests())
    for request in _requests():
        _assert_equal(results[request.row, 0], _reference(target, request, rule))


def test_a_threshold_transition_may_commit_several_tokens(target: PagedTarget) -> None:
    results = _decode(_engine(target, rule=THRESHOLD), _requests())
    assert any(r.trace and r.transitions < len(r.trace.tokens) for r in results.values())
    assert all(r.trace and r.transitions == 1 + max(r.trace.steps) for r in results.values())


def test_unfused_stores_are_forwards_of_their_own(target: PagedTarget) -> None:
    request = _requests(max_tokens=4 * L)[1]  # ends three blocks after its first one
    fused = _decode(_engine(target), [request])[1, 0]
    apart = _decode(_engine(target, full_drafts="drop", fused_store=False), [request])[1, 0]
    blocks = len({p // L for p in apart.trace.positions}) if apart.trace else 0
    assert (fused.nfe_store, apart.nfe_store) == (0, blocks - 1)
    assert apart.nfe == fused.nfe


def test_a_padded_forward_has_one_size_whatever_was_drafted(target: PagedTarget) -> None:
    engine = _engine(target, budget=FixedBudget(9), full_drafts="drop", padded=True)
    engine.add(_requests()[0])
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


def test_all_pages_are_given_back(target: PagedTarget) -> None:
    engine = _engine(target, budget=FixedBudget(8))
    _decode(engine, _requests(samples=2))
    engine.check()
    assert engine.num_active == engine.num_waiting == 0


def test_rounds_and_accepted_drafts_are_counted_by_block_of_the_output(
    target: PagedTarget,
) -> None:
    engine = _engine(target, rule=SAMPLED, budget=FixedBudget(6))
    results = _decode(engine, _requests()).values()
    counted = {name: n for name, n in engine.counters().items() if name.startswith("block:")}
    for what in ("rounds", "accepted"):
        by_block = [n for name, n in counted.items() if name.endswith(what)]
        assert sum(by_block) == sum(getattr(result, what) for result in results)
        assert len(by_block) > 1


def test_equal_states_of_several_samples_are_evaluated_once(target: PagedTarget) -> None:
    one, three = _engine(target), _engine(target)
    _decode(one, [r for r in _requests() if r.row == 4])
    _decode(three, [r for r in _requests(samples=3) if r.row == 4])
    assert three.counters()["positions"] == one.counters()["positions"]


def test_samples_share_the_pages_of_their_prompt(target: PagedTarget) -> None:
    engine = _engine(target, rule=SAMPLED)
    results = _decode(engine, [r for r in _requests(samples=3) if r.row == 4])
    assert engine.counters()["page_hits"] >= 2 * 3
    assert sorted(r.nfe_prefill for r in results.values()) == [0, 0, 1]


def test_few_pages_only_slow_the_batch_down(target: PagedTarget) -> None:
    requests = _requests(samples=2)
    engine = _engine(target, batch=8, num_pages=7, budget=FixedBudget(8))
    results = _decode(engine, requests)
    for request in requests:
        _assert_equal(results[request.row, request.sample], _reference(target, request, GREEDY))


def test_a_sample_that_never_fits_is_refused(target: PagedTarget) -> None:
    with pytest.raises(ValueError, match="more prefix pages than there are"):
        _engine(target, num_pages=4).add(_requests()[4])


def test_a_long_prompt_enters_in_several_rounds(
    target: PagedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.rounds, "MAX_WRITES", 1)
    request = _requests()[4]
    result = _decode(_engine(target), [request])[4, 0]
    _assert_equal(result, _reference(target, request, GREEDY))
    assert result.nfe_prefill == 3


def test_a_finished_samples_slot_is_taken_while_others_go_on(target: PagedTarget) -> None:
    budgets = (2, 40, 2, 2)
    requests = [replace(_requests()[0], row=row, max_tokens=num) for row, num in enumerate(budgets)]
    settings = EngineSettings(rule=GREEDY, batch=2, num_pages=80)
    engine = Engine(target, settings=settings, limits=_endless, budget=FixedBudget(0))
    assert [row for row, _ in _decode(engine, requests)] == [0, 2, 3, 1]


def test_an_aborted_shard_leaves_the_others_alone(target: PagedTarget) -> None:
    engine = _engine(target, batch=8, budget=FixedBudget(4))
    for request in _requests():
        engine.add(request)
    for _ in range(3):
        engine.step()
    engine.abort(0)
    engine.check()
    results = _finish(engine)
    assert {row for row, _ in results} == {1, 3}
    for request in _requests():
        if request.shard == 1:
            _assert_equal(results[request.row, 0], _reference(target, request, GREEDY))


def test_pages_that_an_aborted_sample_owed_are_written_by_another(
    target: PagedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.rounds, "MAX_WRITES", 1)
    first = _requests()[4]
    second = SampleRequest(
        shard=1, row=9, sample=0, prompt_ids=first.prompt_ids, key=7, max_tokens=14
    )
    engine = _engine(target)
    engine.add(first)
    engine.add(second)
    engine.step()
    engine.abort(first.shard)
    engine.check()
    _assert_equal(_finish(engine)[9, 0], _reference(target, second, GREEDY))


def _prefilled(engine: Engine, target: PagedTarget, requests: list[SampleRequest]) -> int:
    """Positions of prompts that were computed."""
    blocks, run = [0], target.hidden

    def counting(units: list[Unit], pages: KVPages) -> Tensor:
        header = len(requests[0].prompt_ids) // L * L
        blocks[0] += sum(u.write >= 0 and u.start < header for u in units)
        return run(units, pages)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "hidden", counting)
        _decode(engine, requests)
    return blocks[0] * L


def test_copies_of_a_prompt_and_prompts_with_one_header_are_prefilled_once(
    target: PagedTarget,
) -> None:
    rng = np.random.default_rng(3)
    header = tuple(int(i) for i in rng.integers(0, 256, 512))
    tails = [tuple(int(i) for i in rng.integers(0, 256, 12)) for _ in range(3)]

    def requests(num_rows: int, samples: int) -> list[SampleRequest]:
        return [
            SampleRequest(
                shard=0,
                row=row,
                sample=sample,
                prompt_ids=header + tails[row],
                key=100 * row + sample,
                max_tokens=2,
            )
            for row in range(num_rows)
            for sample in range(samples)
        ]

    def engine() -> Engine:
        return _engine(target, rule=SAMPLED, batch=24, num_pages=600, budget=FixedBudget(2))

    one = _prefilled(engine(), target, requests(1, 1))
    assert one == 512 + L
    assert _prefilled(engine(), target, requests(1, 8)) == one
    assert _prefilled(engine(), target, requests(3, 8)) <= 1.1 * one


def test_a_long_prompt_that_enters_does_not_hold_the_others_up(
    target: PagedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = _requests()[0], _requests()[4]

    def rounds(requests: list[SampleRequest]) -> int:
        engine = _engine(target)
        engine.add(requests[0])
        engine.step()
        for request in requests[1:]:
            engine.add(request)
        num = 1
        while not any(r.request.row == short.row for r in engine.step()):
            num += 1
        return num

    alone = rounds([short])
    monkeypatch.setattr(workers.rounds, "MAX_WRITES", 1)
    assert rounds([short, long]) == alone


def test_an_engine_says_where_its_time_went(target: PagedTarget) -> None:
    ticks = iter(range(10**9))
    engine = Engine(
        target,
        settings=EngineSettings(rule=GREEDY, batch=2, num_pages=80),
        limits=_limits,
        drafter=_drafter(GREEDY),
        budget=FixedBudget(3),
        clock=lambda: float(next(ticks)),
    )
    _decode(engine, _requests())
    spent = engine.counters()
    assert spent["target_us"] == 1_000_000 * spent["forwards"]  # a tick each
    assert 0 < spent["drafter_us"] <= spent["target_us"]
    assert spent["host_us"] > 0


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
    _decode(_engine(target, budget=Shut(0)), _requests())
    assert max(kept) == 1
