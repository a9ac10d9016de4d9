"""Whole samples under released loops' rules: against a plain loop, and drafted against draft-free.

Tokens and commit order, by both decoders, for every table, prompt edge and drafter.
"""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.base import Drafter, DraftRequest, Drafts
from spot.drafters.sets import StaleSetsDrafter
from spot.drafters.stale_rule import StaleRuleDrafter
from spot.limits import Limits
from spot.released import own_twin
from spot.transition import Rule
from tests.spot.hostile import Hostile
from tests.spot.lineup import MODES, Mode, Moves, Outcome, decode_all, decode_one, make_drafter
from tests.spot.plain_released import PlainLoop
from tests.spot.toy import LENGTH, MASK_ID, TABLES, VOCAB_ROWS, ToyTarget, mixed_table, steady_table

RULES = (
    *(Rule(name="low_confidence_static", temperature=t) for t in (0.0, 1.0)),
    *(Rule(name="low_confidence_static", temperature=t, denoising_steps=3) for t in (0.0, 1.0)),
    *(Rule(name="low_confidence_dynamic", tau=0.7, temperature=t) for t in (0.0, 1.0)),
    Rule(name="low_confidence_dynamic", tau=0.5, temperature=1.0, top_k=3, denoising_steps=2),
    *(Rule(name="llada2_threshold", tau=0.6, temperature=t, denoising_steps=2) for t in (0.0, 1.0)),
    *(Rule(name="sequential", temperature=t) for t in (0.0, 1.0)),
    Rule(name="sequential", temperature=1.0, top_p=0.9, denoising_steps=3),
    *(Rule(name="entropy_bounded", entropy_bound=1.5, temperature=t) for t in (0.0, 1.0)),
)


def _short(rule: Rule) -> str:
    constants = (rule.tau, rule.denoising_steps, rule.entropy_bound, rule.temperature)
    return "-".join([rule.name, *(f"{c:g}" for c in constants if c is not None)])


PROMPTS = (1, LENGTH - 1, LENGTH, LENGTH + 1, 2 * LENGTH - 1, 2 * LENGTH)
TARGET, STEADY = ToyTarget(mixed_table), ToyTarget(steady_table)


def _samples() -> list[Sample]:
    """Prompts of every edge length for each table, all in one batch; one stop id."""
    return [
        Sample(
            prompt_ids=(kind, *((7 * kind + 3 * p) % 4 for p in range(1, num_prompt))),
            key=(number * len(TABLES) + kind + 1) * 0x9E3779B97F4A7C15 % 2**64,
            limits=Limits(prompt_tokens=num_prompt, max_tokens=7, stop_ids=frozenset({3})),
        )
        for kind in range(len(TABLES))
        for number, num_prompt in enumerate(PROMPTS)
        if (kind + number) % 2
    ]


SAMPLES = _samples()


@cache
def _moves(rule: Rule) -> Moves:
    decoder = ReferenceDecoder(TARGET, rule=rule)
    return {s.key: decoder.decode(s).trajectory.moves for s in SAMPLES}


@cache
def _free(rule: Rule) -> list[Outcome]:
    return [decode_one(TARGET, sample, rule=rule) for sample in SAMPLES]


@pytest.mark.parametrize("rule", RULES, ids=_short)
def test_draft_free_decoding_equals_the_plain_loop(rule: Rule) -> None:
    plain = PlainLoop(table=mixed_table, rule=rule)
    for sample in SAMPLES:
        found = [[(c.position, c.token) for c in move] for move in _moves(rule)[sample.key]]
        assert found == plain.decode(sample.prompt_ids, limits=sample.limits, key=sample.key)


def _drafters(rule: Rule) -> list[Drafter]:
    drafters: list[Drafter] = [
        StaleRuleDrafter(rule=rule, mask_id=MASK_ID),
        StaleRuleDrafter(rule=rule, mask_id=MASK_ID, coupled=False),
        make_drafter("joint", rule=rule, moves=_moves(rule)),
        Hostile(5, mask_id=MASK_ID, num_tokens=VOCAB_ROWS),
    ]
    twin = own_twin(rule)
    if twin.name == "strict":
        drafters.append(make_drafter("spot", rule=twin, moves={}))
    if twin.name == "threshold":
        drafters.append(StaleSetsDrafter(rule=twin, mask_id=MASK_ID))
    return drafters


@pytest.mark.parametrize("rule", RULES, ids=_short)
def test_the_engine_decodes_as_if_nothing_were_drafted(rule: Rule) -> None:
    for turn, drafter in enumerate(_drafters(rule)):
        mode = MODES[(turn + RULES.index(rule)) % len(MODES)]
        found = decode_all(TARGET, SAMPLES, rule=rule, drafter=drafter, budget=5, mode=mode)
        assert found == _free(rule), (type(drafter).__name__, mode)


@pytest.mark.parametrize("rule", RULES, ids=_short)
def test_the_reference_decodes_as_if_nothing_were_drafted(rule: Rule) -> None:
    for turn, drafter in enumerate(_drafters(rule)):
        for row in range(turn, len(SAMPLES), 5):
            found = decode_one(TARGET, SAMPLES[row], rule=rule, drafter=drafter, budget=5)
            assert found == _free(rule)[row], type(drafter).__name__


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), rule=st.sampled_from(RULES), mode=st.sampled_from(MODES))
def test_no_drafter_can_change_an_output(seed: int, rule: Rule, mode: Mode) -> None:
    hostile = Hostile(seed, mask_id=MASK_ID, num_tokens=VOCAB_ROWS)
    found = decode_all(TARGET, SAMPLES, rule=rule, drafter=hostile, budget=8, mode=mode)
    assert found == _free(rule)


@pytest.mark.parametrize("rule", [r for r in RULES if r.denoising_steps != 2], ids=_short)
def test_drafts_by_the_rule_itself_save_forwards(rule: Rule) -> None:
    drafter = StaleRuleDrafter(rule=rule, mask_id=MASK_ID)
    decoder = ReferenceDecoder(STEADY, rule=rule, drafter=drafter, budget=4)
    trajectories = [decoder.decode(sample).trajectory for sample in SAMPLES[::2]]
    assert sum(t.cost.accepted for t in trajectories) > 0
    assert sum(t.cost.nfe for t in trajectories) < sum(t.transitions for t in trajectories)


@pytest.mark.parametrize("released", [RULES[0], RULES[4]], ids=_short)
def test_one_a_step_at_temperature_zero_is_our_own_rule(released: Rule) -> None:
    own = own_twin(released)
    assert not own.is_released
    ours = {s.key: ReferenceDecoder(TARGET, rule=own).decode(s).trajectory.moves for s in SAMPLES}
    assert {k: [[c[:2] for c in m] for m in moves] for k, moves in ours.items()} == {
        k: [[c[:2] for c in m] for m in moves] for k, moves in _moves(released).items()
    }


def test_a_state_that_is_reached_at_another_step_is_not_accepted() -> None:
    """Its transition was computed for noise that is not its own."""
    rule = Rule(name="low_confidence_static", temperature=1.0)
    truth = make_drafter("joint", rule=rule, moves=_moves(rule))

    class Late:
        """True states, each said to lie one transition deeper."""

        def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
            """See ``Drafter.propose``."""
            return [d._replace(depths=d.depths + 1) for d in truth.propose(requests)]

    decoder = ReferenceDecoder(TARGET, rule=rule, drafter=Late(), budget=4)
    for sample in SAMPLES:
        assert decoder.decode(sample).trajectory.cost.accepted == 0


def test_what_a_verifier_is_not_defined_for_is_refused() -> None:
    with pytest.raises(ValueError, match="greedy match is not defined for the sequential rule"):
        ReferenceDecoder(TARGET, rule=Rule(name="sequential"), verifier="greedy")
    with pytest.raises(ValueError, match="strict rule only"):
        ReferenceDecoder(TARGET, rule=Rule(name="sequential"), verifier="rejection")
    with pytest.raises(ValueError, match="9 denoising steps of a block of 4"):
        ReferenceDecoder(TARGET, rule=Rule(name="sequential", denoising_steps=9))
