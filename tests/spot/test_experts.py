"""Mixtures of experts: bits that do not depend on company, ties that go to the lowest number."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from transformers import Glm4MoeConfig
from transformers.models.glm4_moe.modeling_glm4_moe import Glm4MoeMoE

from spot.targets.base import Unit
from spot.targets.experts import OrderedExperts, OrderedRouter, order_experts
from spot.targets.paged import PagedTarget
from tests.checkpoints import LENGTH, write_released

WIDTH, NUM_EXPERTS = 1200, 16  # wider than one chunk of an inner dimension


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


def mixture(*, width: int = WIDTH, inner: int = 600) -> Glm4MoeMoE:
    torch.manual_seed(0)
    config = Glm4MoeConfig(
        hidden_size=width,
        moe_intermediate_size=inner,
        n_routed_experts=NUM_EXPERTS,
        num_experts_per_tok=4,
        n_group=4,
        topk_group=2,
        n_shared_experts=1,
        routed_scaling_factor=2.5,
    )
    config._experts_implementation = "eager"
    module = Glm4MoeMoE(config).eval().requires_grad_(False)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    return module


def ordered(module: Glm4MoeMoE) -> Glm4MoeMoE:
    order_experts(module)
    assert isinstance(module.gate, OrderedRouter)
    assert isinstance(module.experts, OrderedExperts)
    return module


@torch.no_grad()
def routed(module: Glm4MoeMoE, x: torch.Tensor) -> torch.Tensor:
    """Without the shared experts, whose linear layers are made invariant elsewhere."""
    _, weights, experts = module.gate(x)
    out: torch.Tensor = module.experts(x, experts, weights)
    return out


def test_ordered_experts_compute_what_the_native_ones_compute() -> None:
    x = torch.randn(40, 96)
    native = routed(mixture(width=96, inner=48), x)
    assert torch.allclose(routed(ordered(mixture(width=96, inner=48)), x), native, atol=1e-6)


@pytest.mark.parametrize(("num_rows", "threads"), [(32, 1), (33, 2), (47, 1)])
def test_a_row_has_the_same_bits_in_every_company(num_rows: int, threads: int) -> None:
    module = ordered(mixture())
    x = torch.randn(48, WIDTH)
    whole = routed(module, x)
    torch.set_num_threads(threads)
    for first in (0, 48 - num_rows):
        part = slice(first, first + num_rows)
        assert torch.equal(routed(module, x[part]), whole[part])


@torch.no_grad()
def test_equal_experts_are_taken_by_their_numbers() -> None:
    module = ordered(mixture(width=96, inner=48))
    module.gate.weight.zero_()
    _, weights, experts = module.gate(torch.randn(32, 96))
    assert experts.tolist() == [[0, 1, 2, 3]] * 32
    assert torch.equal(weights, torch.full((32, 4), 2.5 / 4))


@torch.no_grad()
def test_experts_come_from_the_groups_whose_two_best_are_worth_most() -> None:
    module = ordered(mixture(width=96, inner=48))
    module.gate.weight.zero_()
    bias = torch.zeros(NUM_EXPERTS)
    bias[[4, 5]], bias[12], bias[[8, 9]] = 0.3, 0.5, 0.2  # groups 1, 3 and 2 in this order
    module.gate.e_score_correction_bias.copy_(bias)
    _, _, experts = module.gate(torch.randn(32, 96))
    assert experts[0].tolist() == [4, 5, 6, 12]  # the fourth by a tie


@pytest.mark.parametrize("company", [2, 5, 13])
def test_a_state_of_a_mixture_has_the_same_bits_alone_and_in_every_slot(
    tmp_path: Path, company: int
) -> None:
    target = PagedTarget.load(write_released("llada2", tmp_path))
    blocks = np.random.default_rng(1).integers(0, 256, (company + 3, LENGTH))
    pages = target.new_pages(3)
    target.hidden(
        [Unit(state=blocks[b], start=b * LENGTH, pages=tuple(range(b)), write=b) for b in range(3)],
        pages,
    )
    unit = Unit(state=blocks[3], start=3 * LENGTH, pages=(0, 1, 2))
    alone = target.hidden([unit], pages)[0]
    others = [Unit(state=b, start=0, pages=()) for b in blocks[4:]]
    for slot in range(company):
        units = [*others[:slot], unit, *others[slot:]]
        assert torch.equal(target.hidden(units, pages)[slot], alone)
