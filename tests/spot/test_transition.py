import math
from typing import Literal

import numpy as np
import pytest
import torch

from spot.transition import (
    Rule,
    ban,
    confidence,
    draw,
    kept,
    law,
    leader,
    select,
    tied,
    weighed,
)

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


def test_a_penalty_makes_positions_of_certain_tokens_count_as_less_sure() -> None:
    conf, token = torch.tensor([-0.1, -0.2, -0.3]), torch.tensor([7, 1, 8])
    rule = Rule(confidence_penalty=0.15, penalized_ids=(7, 9))
    assert weighed(conf, token, rule).tolist() == pytest.approx([-0.25, -0.2, -0.3])
    assert weighed(conf, token, Rule()) is conf
    with pytest.raises(ValueError, match="the sequential rule has no confidence_penalty"):
        Rule(name="sequential", confidence_penalty=1.0, penalized_ids=(7,))


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


def test_the_law_is_what_draws_follow() -> None:
    logits = torch.tensor([[1.2, -0.3, 0.4, 2.0, 0.0], [0.0, 5.0, 5.0, -INF, 1.0]])
    rule = Rule(temperature=0.7, top_k=3, top_p=0.9)
    expected = (logits.double() / 0.7).masked_fill(~kept(logits, rule), -INF).softmax(-1)
    assert torch.equal(law(logits, rule), expected)
    assert law(logits, Rule()).tolist() == [[0, 0, 0, 1, 0], [0, 1, 0, 0, 0]]


THRESHOLD = Rule(name="threshold", tau=0.7)


def test_strict_commits_the_leader_alone() -> None:
    conf = torch.tensor([[-0.01, -0.001, -INF], [-INF, -3.0, -3.0]])
    assert select(conf, Rule()).tolist() == [[False, True, False], [False, True, False]]


def test_threshold_commits_everything_above_tau() -> None:
    conf = torch.tensor([0.71, 0.69, 0.99, 0.0]).log()[None]
    assert select(conf, THRESHOLD).tolist() == [[True, False, True, False]]


def test_threshold_falls_back_on_the_leader_of_its_own_state() -> None:
    conf = torch.tensor([[0.2, 0.6, 0.6, 0.0], [0.9, 0.8, 0.0, 0.0]]).log()
    assert select(conf, THRESHOLD).tolist() == [
        [False, True, False, False],
        [True, True, False, False],
    ]


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.7, 0.85, 0.9, 0.95])
def test_a_confidence_of_exactly_tau_is_not_above_it(tau: float) -> None:
    rule = Rule(name="threshold", tau=tau)
    at = np.float32(np.log(np.float64(tau)))  # rounded once
    above = np.nextafter(at, np.float32(0))
    assert rule.log_tau == float(at)
    conf = torch.from_numpy(np.array([[-9.0, at, -9.0, above]], np.float32))
    assert select(conf, rule).tolist() == [[False, False, False, True]]


def test_a_tie_counts_where_it_settled_the_choice() -> None:
    conf = torch.tensor(
        [
            [-2.0, -2.0, -INF],  # two leaders
            [-2.0, -1.9, -2.0],  # one
            [-0.1, -0.1, -2.0],  # two, both above tau
        ]
    )
    assert tied(conf, Rule()).tolist() == [True, False, True]
    assert tied(conf, THRESHOLD).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("name", "tau", "message"),
    [
        ("strict", 0.5, "has no tau"),
        ("threshold", None, "needs a tau"),
        ("threshold", 0.0, "needs a tau"),
        ("threshold", 1.0, "needs a tau"),
    ],
)
def test_a_rule_and_its_tau_must_fit(
    name: Literal["strict", "threshold"], tau: float | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Rule(name=name, tau=tau)
