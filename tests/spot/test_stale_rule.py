"""The drafter that follows the target's own rule on stale conditionals."""

import numpy as np
import pytest
import torch

from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.registry import make_drafter
from spot.drafters.stale_rule import StaleRuleDrafter
from spot.limits import Limits
from spot.transition import Rule
from tests.spot.drafting import MASK_ID, peaked, request_for
from tests.spot.toy import LENGTH, Ids, Logits, ToyTarget
from tests.spot.toy import MASK_ID as TOY_MASK

RULES = (
    Rule(),
    Rule(temperature=1.0),
    Rule(temperature=1.0, confidence_penalty=1.0, penalized_ids=(0,)),
    Rule(name="low_confidence_static"),
    Rule(name="low_confidence_static", temperature=1.0),
    Rule(name="low_confidence_static", temperature=1.0, denoising_steps=3),
    Rule(name="low_confidence_dynamic", tau=0.9, temperature=1.0, top_k=3),
    Rule(name="sequential", temperature=1.0),
    Rule(name="entropy_bounded", entropy_bound=0.9, temperature=1.0),
)


def settled_table(prefix: Ids, state: Ids) -> Logits:
    """Conditionals that no commit changes, so that stale ones are true."""
    values = np.array([[2.2, 0.1, -0.4, -1.0], [0.3, 1.9, 0.0, -2.0]] * 2)
    values[2:] *= 0.6
    tempting = np.full((len(state), 2), 9.0)
    return np.concatenate([values, tempting], axis=1).astype(np.float32)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r.name}-{r.temperature:g}")
def test_where_nothing_changes_all_transitions_of_a_block_are_foreseen(rule: Rule) -> None:
    target = ToyTarget(settled_table)
    drafter = StaleRuleDrafter(rule=rule, mask_id=TOY_MASK)
    decoder = ReferenceDecoder(target, rule=rule, drafter=drafter, budget=LENGTH)
    limits = Limits(prompt_tokens=LENGTH, max_tokens=2 * LENGTH)
    for key in range(6):
        sample = Sample(prompt_ids=(0, 1, 2, 3), key=key, limits=limits)
        trajectory = decoder.decode(sample).trajectory
        assert trajectory.transitions > 4
        assert trajectory.cost.nfe == 4  # two blocks: an opening, and a walk to the end


@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r.name}-{r.temperature:g}")
def test_a_chain_stays_within_its_budget_and_fills_the_block_only_where_that_is_of_use(
    rule: Rule,
) -> None:
    drafter = StaleRuleDrafter(rule=rule, mask_id=MASK_ID)
    logits = peaked([0.9, 0.7, 0.5, 0.4])
    partly = request_for(logits, committed=(1,), budget=9)
    fully = request_for(logits, committed=(1,), budget=9, full_states=True)
    short = request_for(logits, committed=(1,), budget=1)
    some, all_, one = drafter.propose([partly, fully, short])
    assert (some.states == MASK_ID).any(-1).all()
    assert (all_.states[-1] != MASK_ID).all()
    assert len(one.states) <= 1
    assert all_.depths.tolist() == list(range(1, len(all_.states) + 1))
    assert (np.diff(all_.masses) <= 0.0).all()
    counts = (all_.states == MASK_ID).sum(-1)
    assert (np.diff([3, *counts]) < 0).all()


def test_a_schedule_goes_on_from_the_step_of_the_root() -> None:
    rule = Rule(name="sequential", denoising_steps=3)  # 2, 1 and 1 of four positions
    drafter = StaleRuleDrafter(rule=rule, mask_id=MASK_ID)
    logits = peaked([0.9, 0.8, 0.7, 0.6])
    first, later = drafter.propose([request_for(logits), request_for(logits, step=1)])
    assert (first.states[0] != MASK_ID).tolist() == [True, True, False, False]
    assert (later.states[0] != MASK_ID).tolist() == [True, False, False, False]


def test_uncoupled_chains_hold_best_tokens() -> None:
    rule = Rule(name="sequential", temperature=3.0)
    best = [2, 3, 4, 5]
    coupled = StaleRuleDrafter(rule=rule, mask_id=MASK_ID)
    uncoupled = StaleRuleDrafter(rule=rule, mask_id=MASK_ID, coupled=False)
    logits = peaked([0.5] * 4)
    requests = [request_for(logits, key=key, full_states=True) for key in range(5)]
    ends = [d.states[-1].tolist() for d in uncoupled.propose(requests)]
    assert ends == [best] * 5
    assert any(d.states[-1].tolist() != best for d in coupled.propose(requests))


def test_the_method_is_made_by_its_name_and_for_our_own_rule_where_that_is_the_same() -> None:
    rule = Rule(name="low_confidence_static")
    by_name = make_drafter("stale_rule", None, rule=rule, mask_id=MASK_ID)
    direct = StaleRuleDrafter(rule=Rule(), mask_id=MASK_ID)
    request = request_for(peaked([0.5, 0.9, 0.7]))
    made, expected = by_name.propose([request])[0], direct.propose([request])[0]
    assert np.array_equal(made.states, expected.states)
    assert torch.equal(torch.from_numpy(made.masses), torch.from_numpy(expected.masses))
