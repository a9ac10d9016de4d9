import math

import pytest
import torch

from spot.transition import Rule, ban, confidence, draw, kept, leader

INF = math.inf


def test_confidence_is_the_log_of_the_top_probability() -> None:
    logits = torch.randn(40, 50, generator=torch.Generator().manual_seed(1))
    conf, token = confidence(logits)
    best = logits.double().log_softmax(-1).max(-1)
    assert torch.allclose(conf.double(), best.values, atol=1e-6)
    assert torch.equal(token, best.indices)


def test_confidence_keeps_apart_what_a_softmax_ties_at_one() -> None:
    logits = torch.tensor([[20.0, 0.0, 0.0], [25.0, 0.0, 0.0]])
    assert torch.equal(*torch.softmax(logits, -1).amax(-1)[:, None].expand(2, 2).unbind(1))
    conf, _ = confidence(logits)
    assert conf[1] > conf[0]


def test_ties_go_to_the_lowest_token_and_the_lowest_position() -> None:
    _, token = confidence(torch.tensor([[1.0, 3.0, 3.0]]))
    assert token.tolist() == [1]
    assert leader(torch.tensor([[-INF, -0.5, -0.5], [-2.0, -INF, -1.0]])).tolist() == [1, 2]


def test_banned_ids_never_win() -> None:
    logits = ban(torch.tensor([[9.0, 1.0, 2.0]]), torch.tensor([True, False, False]))
    conf, token = confidence(logits)
    assert token.tolist() == [2]
    assert conf.exp().item() == pytest.approx(math.exp(2) / (math.exp(1) + math.exp(2)))


def test_top_k_breaks_ties_by_the_lowest_id() -> None:
    logits = torch.tensor([[1.0, 2.0, 2.0, 2.0]])
    keep = kept(logits, Rule(temperature=1.0, top_k=2))
    assert keep.tolist() == [[False, True, True, False]]


def test_top_p_keeps_the_crossing_token() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.2]]).log()
    assert kept(logits, Rule(temperature=1.0, top_p=0.4)).tolist() == [[True, False, False]]
    assert kept(logits, Rule(temperature=1.0, top_p=0.6)).tolist() == [[True, True, False]]


def test_top_p_looks_at_the_tempered_law() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.2]]).log()
    assert kept(logits, Rule(temperature=0.2, top_p=0.6)).tolist() == [[True, False, False]]


@pytest.mark.parametrize(
    "rule",
    [
        Rule(temperature=1.0),
        Rule(temperature=0.5),
        Rule(temperature=1.5, top_k=3),
        Rule(temperature=1.0, top_p=0.8),
    ],
)
def test_draws_follow_the_tempered_law_over_the_kept_tokens(rule: Rule) -> None:
    logits = torch.tensor([1.2, -0.3, 0.4, 2.0, 0.0])
    num = 10_000
    law = (logits / rule.temperature).masked_fill(~kept(logits[None], rule)[0], -INF).softmax(0)
    tokens = draw(
        logits.expand(num, -1), keys=torch.arange(num), positions=torch.full((num,), 9), rule=rule
    )
    counts = torch.bincount(tokens, minlength=5)
    assert not counts[law == 0].any()
    live = law > 0
    chi_square = ((counts[live] - num * law[live]) ** 2 / (num * law[live])).sum().item()
    assert chi_square < 23.5  # 99.99% point at 4 degrees of freedom


def test_a_draw_is_a_function_of_key_and_position() -> None:
    logits = torch.zeros(1, 200)
    rule = Rule(temperature=1.0)

    def token(key: int, position: int) -> int:
        keys, positions = torch.tensor([key]), torch.tensor([position])
        return int(draw(logits, keys=keys, positions=positions, rule=rule))

    assert token(5, 8) == token(5, 8)
    assert len({token(5, p) for p in range(6)}) > 1
    assert len({token(k, 8) for k in range(6)}) > 1
