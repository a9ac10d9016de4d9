"""Token hypotheses against the draws that the target would make from the same conditionals."""

import pytest
import torch
from torch import Tensor

from spot.drafters.batch import stack
from spot.drafters.hypotheses import Candidates, candidates
from spot.noise import gumbel
from spot.transition import Rule, draw, law
from spot.verification import signed
from tests.spot.drafting import MASK_ID, START, request_for

LENGTH, VOCAB = 5, 12
RULES = {
    "plain": Rule(temperature=1.0),
    "hot": Rule(temperature=1.5),
    "top_k": Rule(temperature=0.7, top_k=3),
    "top_p": Rule(temperature=1.5, top_p=0.8),
    "both": Rule(temperature=1.0, top_k=4, top_p=0.6),
}
EVERY_RULE = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


def _logits(seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(LENGTH, VOCAB, generator=generator)


def _candidates(
    logits: Tensor, rule: Rule, *, coupled: bool = True, key: int = 7, count: int = 1
) -> Candidates:
    """With the middle committed since."""
    batch = stack([request_for(logits, committed=(2,), key=key)], mask_id=MASK_ID)
    return candidates(batch, rule=rule, coupled=coupled, count=count)


OPEN = [0, 1, 3, 4]


@EVERY_RULE
@pytest.mark.parametrize("key", [3, 2**64 - 5])
def test_if_nothing_has_changed_the_coupled_guess_is_the_targets_draw(rule: Rule, key: int) -> None:
    for seed in range(20):
        logits = _logits(seed)
        keys, positions = torch.full((LENGTH,), signed(key)), START + torch.arange(LENGTH)
        drawn = draw(logits, keys=keys, positions=positions, rule=rule)
        found = _candidates(logits, rule, key=key).tokens[0, :, 0]
        assert found[OPEN].tolist() == drawn[OPEN].tolist()


@EVERY_RULE
def test_the_uncoupled_guess_is_the_likeliest_token_whatever_the_key(rule: Rule) -> None:
    logits = _logits(1)
    for key in (1, 2):
        found = _candidates(logits, rule, coupled=False, key=key).tokens[0, :, 0]
        assert found[OPEN].tolist() == logits.argmax(-1)[OPEN].tolist()


def test_coupled_guesses_differ_between_keys_and_positions() -> None:
    flat = torch.zeros(LENGTH, VOCAB)
    tokens = [_candidates(flat, RULES["hot"], key=key).tokens[0, OPEN, 0] for key in range(8)]
    assert len({tuple(row.tolist()) for row in tokens}) > 4
    assert any(len(set(row.tolist())) > 1 for row in tokens)


@pytest.mark.parametrize("coupled", [False, True])
def test_at_temperature_0_candidates_go_by_their_untempered_probability(coupled: bool) -> None:
    logits = _logits(2)
    found = _candidates(logits, Rule(), coupled=coupled, count=2)
    best = logits.softmax(-1).topk(2)
    assert torch.equal(found.tokens[0, OPEN], best.indices[OPEN])
    assert torch.allclose(found.probabilities[0, OPEN], best.values[OPEN], rtol=5e-3)


@EVERY_RULE
def test_above_it_their_probability_is_that_of_the_tempered_kept_law(rule: Rule) -> None:
    logits = _logits(3)
    found = _candidates(logits, rule, count=1)
    expected = law(logits, rule).float().gather(1, found.tokens[0])
    assert torch.allclose(found.probabilities[0, OPEN], expected[OPEN], rtol=2e-2)
    assert (expected[OPEN] > 0).all()


def test_the_margin_is_what_separates_the_two_best_perturbed_candidates() -> None:
    logits, rule, key = _logits(4), RULES["hot"], 11
    positions = START + torch.arange(LENGTH)
    tokens = torch.arange(VOCAB).expand(LENGTH, -1)
    noise = gumbel(torch.full((LENGTH,), key), positions, tokens)
    first, second = (logits / rule.temperature + noise).topk(2).values.unbind(-1)
    margin = _candidates(logits, rule, key=key).margin[0]
    assert torch.allclose(margin[OPEN].double(), (first - second)[OPEN], atol=0.02)


def test_an_unrivalled_candidate_has_a_finite_margin() -> None:
    margin = _candidates(_logits(5), Rule(temperature=1.0, top_k=1)).margin[0]
    assert margin[OPEN].tolist() == [50.0] * len(OPEN)


def test_committed_positions_have_no_hypothesis() -> None:
    found = _candidates(_logits(6), RULES["plain"], count=2)
    assert not found.tokens[0, 2].any()
    assert not found.probabilities[0, 2].any()
