"""The confidence tree against its definition, enumerated."""

from itertools import permutations

import numpy as np
import pytest
import torch

from spot.drafters.base import DraftRequest, Drafts
from spot.drafters.confidence_tree import ConfidenceTreeDrafter
from spot.transition import Rule, draw
from tests.spot.drafting import MASK_ID, START, peaked, request_for

BEST = [0.5, 0.9, 0.7, 0.8]
LOGITS = peaked(BEST)


def _propose(request: DraftRequest, rule: Rule | None = None, *, coupled: bool = True) -> Drafts:
    drafter = ConfidenceTreeDrafter(rule=rule or Rule(), mask_id=MASK_ID, coupled=coupled)
    return drafter.propose([request])[0]


def _masses(drafts: Drafts) -> dict[tuple[int, ...], float]:
    return {
        tuple(state.tolist()): float(mass)
        for state, mass in zip(drafts.states, drafts.masses, strict=True)
    }


def _defined(masked: list[int], root: list[int], *, deepest: int) -> dict[tuple[int, ...], float]:
    """Every set of commits with its heaviest order; weights renormalised at each step."""
    found: dict[tuple[int, ...], float] = {}
    for depth in range(1, deepest + 1):
        for order in permutations(masked, depth):
            mass, left, state = 1.0, sum(BEST[p] for p in masked), list(root)
            for position in order:
                mass, left = mass * BEST[position] / left, left - BEST[position]
                state[position] = 2 + position
            found[tuple(state)] = max(mass, found.get(tuple(state), 0.0))
    return found


@pytest.mark.parametrize("full_states", [False, True])
@pytest.mark.parametrize("committed", [(), (1,)])
def test_masses_are_products_of_weights_renormalised_over_what_is_masked(
    committed: tuple[int, ...], full_states: bool
) -> None:
    request = request_for(LOGITS, committed=committed, full_states=full_states)
    masked = [p for p in range(len(BEST)) if p not in committed]
    deepest = len(masked) if full_states else len(masked) - 1
    expected = _defined(masked, request.root.tolist(), deepest=deepest)
    found = _masses(_propose(request))
    assert found.keys() == expected.keys()
    assert all(found[s] == pytest.approx(expected[s], rel=5e-3) for s in found)


@pytest.mark.parametrize("budget", [0, 1, 3, 8])
def test_a_budget_keeps_the_heaviest(budget: int) -> None:
    every = _propose(request_for(LOGITS))
    some = _propose(request_for(LOGITS, budget=budget))
    assert np.array_equal(some.states, every.states[:budget])
    assert np.array_equal(some.masses, every.masses[:budget])
    assert (np.diff(every.masses) <= 0).all()


def test_the_most_confident_position_comes_first() -> None:
    state = _propose(request_for(LOGITS, budget=1)).states[0]
    assert state.tolist() == [MASK_ID, 3, MASK_ID, MASK_ID]


def test_above_temperature_0_tokens_are_coupled_draws_and_weights_stay_untempered() -> None:
    rule = Rule(temperature=1.5)
    places = torch.arange(len(BEST))
    drawn = [
        draw(LOGITS, keys=torch.full((4,), key), positions=START + places, rule=rule).tolist()
        for key in range(6)
    ]
    assert len({tuple(tokens) for tokens in drawn}) > 1
    for key, tokens in enumerate(drawn):
        found = _propose(request_for(LOGITS, key=key, full_states=True), rule)
        held = {(int(p), int(s[p])) for s in found.states for p in np.flatnonzero(s != MASK_ID)}
        assert held == set(enumerate(tokens))
        assert np.allclose(found.masses, _propose(request_for(LOGITS, full_states=True)).masses)


def test_uncoupled_tokens_are_the_likeliest_ones() -> None:
    best = _propose(request_for(LOGITS))
    for key in range(6):
        found = _propose(request_for(LOGITS, key=key), Rule(temperature=1.5), coupled=False)
        assert np.array_equal(found.states, best.states)
