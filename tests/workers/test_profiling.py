"""Start-up measurements, on clocks that are not real ones."""

import numpy as np
import pytest
import torch
from torch import Tensor

from spot.attention import KVPages
from spot.drafters.base import DraftRequest, Drafts
from spot.targets.base import CacheContext, Canvas, CanvasUnit, Opened, Unit
from tests.spot.toy import LENGTH, ToyTarget, random_table
from tests.spot.toy_canvas import ToyCanvas
from workers.costs import ForwardSize
from workers.profiling import (
    profile,
    profile_canvas_forward,
    profile_drafter,
    profile_forward,
)

BLOCK_S, ROW_S, PAIR_S = 5e-4, 1e-5, 1e-6


class Slow(ToyTarget):
    """Takes its time, and says how much."""

    def __init__(self, *, hiccup: bool = False) -> None:
        super().__init__(random_table)
        self.now_s, self._hiccup = 0.0, hiccup

    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        pairs = sum(len(u.pages) + 1 for u in units) * LENGTH * LENGTH
        self.now_s += BLOCK_S * len(units) + PAIR_S * pairs
        if self._hiccup and len(units) == 4:
            self.now_s += 0.1
        return torch.zeros(len(units), LENGTH, 1)

    def logits(self, hidden: Tensor) -> Tensor:
        self.now_s += ROW_S * len(hidden)
        return torch.zeros(len(hidden), self.spec.vocab_rows)

    def clock(self) -> float:
        return self.now_s


class Trees:
    """Takes a second a call, a tenth a level and a hundredth a draft; trees are always full."""

    def __init__(self, target: Slow) -> None:
        self._target = target

    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        num = requests[0].budget
        drafts = num * len(requests) * (requests[0].depth > 1)
        self._target.now_s += 1.0 + 0.1 * requests[0].depth + 0.01 * drafts
        states = np.zeros((num, LENGTH), np.int64)
        return [Drafts(states, np.ones(num, np.float32), np.ones(num, np.int64))] * len(requests)


def test_a_forwards_cost_is_taken_apart_into_blocks_pairs_and_rows() -> None:
    target = Slow()
    cost = profile_forward(target, clock=target.clock)
    assert cost.pair_s == pytest.approx(PAIR_S)
    assert cost.row_s == pytest.approx(ROW_S)
    size = ForwardSize(5.0 * LENGTH, 700.0, 9.0)
    assert float(cost(size)) == pytest.approx(5 * BLOCK_S + 700 * PAIR_S + 9 * ROW_S)


class SlowCanvas(ToyCanvas):
    """The same, looking both ways; openings are not what is measured."""

    def __init__(self) -> None:
        super().__init__(random_table)
        self.now_s = 0.0

    def open(self, canvases: list[Canvas], *, context: CacheContext) -> list[Opened]:
        self.now_s += 100.0
        return super().open(canvases, context=context)

    def hidden(self, units: list[CanvasUnit]) -> Tensor:
        seen = sum(u.opened.keys[0].shape[1] + LENGTH for u in units)
        self.now_s += BLOCK_S * len(units) + PAIR_S * LENGTH * seen
        return torch.zeros(len(units), LENGTH, 1)

    def logits(self, hidden: Tensor) -> Tensor:
        self.now_s += ROW_S * len(hidden)
        return torch.zeros(len(hidden), self.spec.vocab_rows)

    def clock(self) -> float:
        return self.now_s


def test_states_of_a_canvas_are_taken_apart_in_the_same_way() -> None:
    target = SlowCanvas()
    cost = profile_canvas_forward(target, clock=target.clock)
    assert (cost.pair_s, cost.row_s) == pytest.approx((PAIR_S, ROW_S))
    size = ForwardSize(5.0 * LENGTH, 700.0, 9.0)
    assert float(cost(size)) == pytest.approx(5 * BLOCK_S + 700 * PAIR_S + 9 * ROW_S)


def test_a_forward_that_was_disturbed_costs_no_more_than_a_larger_one() -> None:
    target = Slow(hiccup=True)
    cost = profile_forward(target, clock=target.clock)
    four, six = (float(cost(ForwardSize(n * LENGTH))) for n in (4.0, 6.0))
    assert four <= 1.1 * six < 0.05


def test_larger_forwards_are_not_measured_once_time_has_gone() -> None:
    target = Slow()
    cost = profile_forward(target, clock=lambda: 10_000.0 * target.clock())
    assert 2 <= len(cost.positions) < 6


def test_a_drafters_cost_is_taken_apart_into_calls_levels_and_drafts() -> None:
    target = Slow()
    cost = profile_drafter(target, Trees(target), clock=target.clock)
    assert cost.coefficients[2] == pytest.approx(0.01, rel=0.01)
    assert float(cost(1, 2, 24)) == pytest.approx(1.0 + 0.2 + 0.24, rel=0.15)


def test_a_profile_holds_both() -> None:
    target = Slow()
    budget = profile(target, Trees(target), clock=target.clock)
    assert budget.costs.length == LENGTH
    assert budget.costs.target.pair_s > 0.0
    assert budget.costs.drafter.coefficients.min() > 0.0
