"""Soft labels: less sure the farther a position looks, and rightly so within a factor."""

import math

import torch

from examples.tiny.softening import (
    ORDER_SCALE,
    ORDER_WEIGHT,
    RIGHT_STEP,
    TILT,
    distance,
    doubt_error,
    masked_loss,
    noise_mass,
    order_loss,
    rarity,
    soft_loss,
)

L = 8


def _masked(text: str) -> torch.Tensor:
    return torch.tensor([[letter == "_" for letter in text]])


def test_the_nearest_known_token_counts_and_on_the_right_half_a_step_more() -> None:
    found = distance(_masked("a__b____"), block_length=L)[0]
    places = torch.arange(L)
    nearest = torch.tensor([0, 1, 1 + RIGHT_STEP, 0, 1, 2, 3, 4])
    masked = _masked("a__b____")[0]
    # The tilt counts from the first masked position, so what is known before it is all the same.
    assert torch.allclose(found[masked], (nearest + TILT * (places - 1))[masked])
    assert torch.equal(distance(_masked("aaaaa_b_"), block_length=L)[0, 5:6], torch.tensor([1.0]))


def test_the_block_before_is_known_and_the_one_behind_is_not() -> None:
    found = distance(_masked("________" * 2), block_length=L).view(2, L)
    assert torch.equal(found[0], found[1])
    assert (found[0].diff() > 1.0).all()


def test_doubt_grows_with_distance_and_rarity_and_keeps_below_the_ceiling() -> None:
    near, far = noise_mass(torch.tensor([1.0, 9.0]), torch.ones(2)).tolist()
    rare = noise_mass(torch.tensor([1.0]), torch.tensor([8.0])).item()
    assert near < far < 0.7
    assert near < rare


def test_rare_tokens_have_larger_factors() -> None:
    factors = rarity([[0] * 64 + [1] * 8 + [2]], vocab_size=3)
    assert factors[0] < factors[1] < factors[2]


def test_the_doubt_error_is_a_log_ratio() -> None:
    eps = torch.tensor([0.01, 0.01])
    exact = -torch.log1p(-eps * (1 - 1 / 100))
    error = doubt_error(exact * torch.tensor([1.0, 4.0]), eps, vocab_size=100)
    assert error[0] < 1e-6
    assert torch.isclose(error[1], torch.tensor(4.0).log() - 0.5)  # Huber's linear part


def test_the_loss_is_least_where_eps_puts_the_label() -> None:
    eps, vocab_size = torch.tensor([0.05]), 16
    grid = torch.linspace(2.0, 9.0, 200)
    losses = []
    for height in grid:
        logits = torch.zeros(1, vocab_size)
        logits[0, 3] = height
        losses.append(soft_loss(logits, torch.tensor([3]), eps).item())
    best = torch.zeros(1, vocab_size)
    best[0, 3] = grid[int(torch.tensor(losses).argmin())]
    assert abs(1.0 - best.softmax(-1)[0, 3].item() - 0.05 * 15 / 16) < 2e-3


def test_without_eps_it_is_plain_cross_entropy() -> None:
    torch.manual_seed(0)
    logits, labels = torch.randn(5, 16), torch.arange(5)
    plain = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    assert torch.allclose(soft_loss(logits, labels, torch.zeros(5)), plain)


def test_the_order_loss_falls_as_the_position_with_the_least_eps_becomes_the_surest() -> None:
    masked = torch.tensor([[True, True, False], [False, True, False], [False, False, False]])
    labels, eps = torch.tensor([0, 1, 2]), torch.tensor([0.3, 0.01, 0.2])

    def loss(first: float, second: float) -> float:
        logits = torch.zeros(3, 4)
        logits[[0, 1, 2], labels] = torch.tensor([first, second, 1.0])
        return order_loss(logits, labels, eps, masked).item()

    assert loss(4.0, 1.0) > loss(2.0, 2.0) > loss(1.0, 4.0)
    # A block with one masked position has no order, one without any does not count.
    assert abs(loss(2.0, 2.0) - math.log(2.0) / 2) < 1e-6
    # Doubts that differ by the scale count as one unit of a logit.
    doubts = [math.log(math.log1p(3 * math.exp(-height))) for height in (4.0, 1.0)]
    expected = math.log1p(math.exp((doubts[1] - doubts[0]) / ORDER_SCALE)) / 2
    assert abs(loss(4.0, 1.0) - expected) < 1e-4


def test_a_step_weighs_its_positions_and_counts_the_order_of_soft_ones_only() -> None:
    torch.manual_seed(0)
    masked = torch.cat([_masked("a__b____"), _masked("________")], 1)
    logits, labels = torch.randn(int(masked.sum()), 16), torch.arange(2 * L)[None] % 16
    weights, factor = torch.rand(1, 2 * L), torch.full((16,), 2.0)

    def loss(factor: torch.Tensor | None) -> torch.Tensor:
        return masked_loss(logits, labels, masked, weights=weights, factor=factor, block_length=L)

    wanted = labels[masked]
    plain = torch.nn.functional.cross_entropy(logits, wanted, reduction="none")
    assert torch.isclose(loss(None), (plain * weights[masked]).sum())
    eps = noise_mass(distance(masked, block_length=L)[masked], factor[wanted])
    softened = (soft_loss(logits, wanted, eps) * weights[masked]).sum()
    order = order_loss(logits, wanted, eps, masked.view(2, L))
    assert torch.isclose(loss(factor), softened + ORDER_WEIGHT * order)
