"""How the samplers of released loops select, one transition at a time."""

import math

import pytest
import torch
from torch import Tensor

from spot.released import check_schedule, choose, drawn_confidence, entropy, own_twin, quota
from spot.transition import Rule, draw, law
from spot.verification import transitions
from tests.spot.drafting import all_of, conditionals_of, peaked

STATIC = Rule(name="low_confidence_static")
DYNAMIC = Rule(name="low_confidence_dynamic", tau=0.8)


def _scores(*probabilities: float | None) -> Tensor:
    """Log-confidences of one state; None where nothing is masked."""
    return torch.tensor(
        [[-math.inf if p is None else math.log(p) for p in probabilities]], dtype=torch.float64
    )


def _chosen(scores: Tensor, rule: Rule, *, step: int = 0) -> list[int]:
    found = choose(scores, steps=torch.tensor([step]), rule=rule).chosen[0]
    return found.nonzero()[:, 0].tolist()


def test_the_schedule_gives_the_remainder_to_the_first_steps() -> None:
    rule = Rule(name="sequential", denoising_steps=3)
    assert quota(torch.arange(3), length=8, rule=rule).tolist() == [3, 3, 2]
    assert quota(torch.arange(2), length=8, rule=Rule(name="sequential")).tolist() == [1, 1]


def test_a_quota_above_what_is_masked_touches_no_committed_position() -> None:
    rule = Rule(name="low_confidence_static", denoising_steps=1)
    assert _chosen(_scores(None, 0.4, None, 0.9), rule) == [1, 3]


def test_the_surest_positions_go_first_and_ties_to_the_lowest() -> None:
    rule = Rule(name="low_confidence_static", denoising_steps=2)
    assert _chosen(_scores(0.5, 0.9, 0.5, 0.5), rule) == [0, 1]
    tie = choose(_scores(0.5, 0.9, 0.5, 0.5), steps=torch.tensor([0]), rule=rule).tied
    assert tie.tolist() == [True]
    clear = choose(_scores(0.5, 0.9, 0.6, 0.5), steps=torch.tensor([0]), rule=rule).tied
    assert clear.tolist() == [False]


def test_a_full_choice_is_not_settled_by_a_tie_break() -> None:
    rule = Rule(name="low_confidence_static", denoising_steps=1)
    assert not choose(_scores(0.5, 0.5), steps=torch.tensor([0]), rule=rule).tied.any()


def test_all_above_tau_commit_where_they_are_at_least_the_quota() -> None:
    assert _chosen(_scores(0.9, 0.7, 0.85, 0.95), DYNAMIC) == [0, 2, 3]
    rule = Rule(name="low_confidence_dynamic", tau=0.8, denoising_steps=1)
    assert _chosen(_scores(0.9, 0.7, 0.85, 0.95), rule) == [0, 1, 2, 3]
    pair = Rule(name="llada2_threshold", tau=0.8, denoising_steps=2)
    assert _chosen(_scores(0.9, 0.75, 0.6, 0.7), pair) == [0, 1]


def test_a_confidence_equal_to_tau_does_not_pass() -> None:
    scores = torch.tensor([[DYNAMIC.log_tau, DYNAMIC.log_tau - 1.0, -3.0, -4.0]]).double()
    assert _chosen(scores, DYNAMIC) == [0]
    above = scores.clone()
    above[0, 1] = DYNAMIC.log_tau + 1e-9
    assert _chosen(above, DYNAMIC) == [1]


def test_entropies_add_up_to_less_than_the_bound() -> None:
    rule = Rule(name="entropy_bounded", entropy_bound=0.5)
    scores = -torch.tensor([[0.3, 0.1, 0.2, torch.inf]], dtype=torch.float64)
    assert _chosen(scores, rule) == [1, 2]
    assert _chosen(scores - 1.0, rule) == [1]
    exact = -torch.tensor([[0.25, 0.25, 0.25, 0.25]], dtype=torch.float64)
    assert _chosen(exact, rule) == [0]


def test_confidence_of_a_drawn_token_is_its_probability_in_the_law_it_was_drawn_from() -> None:
    logits = 2 * torch.randn(40, 9, generator=torch.Generator().manual_seed(3))
    keys, positions = torch.arange(40), torch.arange(40)
    rule = Rule(name="low_confidence_static", temperature=1.3, top_k=5, top_p=0.8)
    token = draw(logits, keys=keys, positions=positions, steps=keys, rule=rule)
    expected = law(logits, rule).gather(1, token[:, None])[:, 0].log()
    assert torch.allclose(drawn_confidence(logits, token, rule), expected, atol=1e-12)


def test_sure_tokens_keep_their_order() -> None:
    logits = torch.tensor([[60.0, 0.0], [61.0, 0.0]])
    rule = Rule(name="low_confidence_static", temperature=1.0)
    first, second = drawn_confidence(logits, torch.tensor([0, 0]), rule).tolist()
    assert first < second < 0.0


def test_entropy_is_of_the_tempered_law_before_top_k_and_top_p() -> None:
    logits = torch.tensor([[0.0, 0.0, 0.0, -torch.inf]])
    rule = Rule(name="entropy_bounded", entropy_bound=1.0, temperature=2.0, top_k=1)
    assert entropy(logits, rule).tolist() == pytest.approx([math.log(3)], rel=1e-6)
    cold = Rule(name="entropy_bounded", entropy_bound=1.0)
    sharp = torch.tensor([[1.0, 0.0]])
    p = 1 / (1 + math.exp(-1.0))
    expected = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert entropy(sharp, cold).tolist() == pytest.approx([expected], rel=1e-6)
    hot = Rule(name="entropy_bounded", entropy_bound=1.0, temperature=4.0)
    assert entropy(sharp, hot).item() > expected


def test_noise_carries_the_step_only_where_selection_looks_at_it() -> None:
    logits, positions = torch.zeros(1, 500), torch.tensor([3])

    def drawn(rule: Rule, step: int) -> int:
        keys, steps = torch.tensor([9]), torch.tensor([step])
        return int(draw(logits, keys=keys, positions=positions, steps=steps, rule=rule))

    looking = Rule(name="low_confidence_dynamic", tau=0.8, temperature=1.0)
    assert len({drawn(looking, step) for step in range(5)}) == 5
    for rule in (Rule(name="sequential", temperature=1.0), Rule(temperature=1.0)):
        assert {drawn(rule, step) for step in range(5)} == {drawn(looking, 0)}


def test_a_transition_says_how_sure_the_drawn_tokens_were() -> None:
    found = conditionals_of(peaked([0.9, 0.5, 0.7]))
    rule = Rule(name="low_confidence_static", temperature=2.0, denoising_steps=1)
    zero = torch.tensor([0])
    phi = transitions(found, states=zero, starts=zero, keys=zero, steps=zero, rule=rule)
    expected = drawn_confidence(all_of(found.logits), torch.from_numpy(phi.token), rule)
    assert phi.confidence.tolist() == pytest.approx(expected.tolist(), rel=1e-6)
    assert not torch.allclose(expected, found.confidence.double())


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (STATIC, "strict"),
        (DYNAMIC, "threshold"),
        (Rule(name="llada2_threshold", tau=0.9), "threshold"),
        (Rule(name="low_confidence_static", denoising_steps=2), "low_confidence_static"),
        (Rule(name="low_confidence_static", temperature=1.0), "low_confidence_static"),
        (Rule(name="sequential"), "sequential"),
    ],
)
def test_our_own_rule_is_drafted_for_where_it_makes_the_same_transitions(
    rule: Rule, name: str
) -> None:
    assert (own_twin(rule).name, own_twin(rule).tau) == (name, rule.tau)


def test_a_schedule_longer_than_the_block_is_refused() -> None:
    check_schedule(Rule(name="sequential", denoising_steps=4), length=4)
    with pytest.raises(ValueError, match="5 denoising steps of a block of 4 positions"):
        check_schedule(Rule(name="sequential", denoising_steps=5), length=4)
