"""The SPOT drafter's token hypotheses and budgets; its tree has tests of its own."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from spot.conditionals import stale_of
from spot.drafters.base import STALE_TOP, DraftRequest, Drafts, Stale
from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.hypotheses import Survival
from spot.drafters.order_model import OrderModel
from spot.drafters.spot import SpotDrafter, SpotOptions
from spot.targets.base import Conditionals
from spot.transition import Rule, draw
from spot.verification import signed
from tests.spot.drafting import all_of, conditionals_of

MASK_ID, LENGTH, START, ALL = 99, 5, 40, 1000
GREEDY = Rule()


@pytest.fixture(scope="module")
def model() -> OrderModel:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return OrderModel(OrderModelShape(width=16, layers=1, heads=2, feedforward=16)).eval()


def _conditionals(seed: int) -> Conditionals:
    """Of one state that is all masks, with no more tokens than a drafter is told of."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(LENGTH, STALE_TOP, generator=generator)
    return conditionals_of(logits)


def _request(
    stale: Stale,
    *,
    committed: tuple[int, ...] = (),
    key: int = 7,
    budget: int = ALL,
    full_states: bool = False,
) -> DraftRequest:
    root = np.full(LENGTH, MASK_ID, np.int64)
    root[list(committed)] = 1
    return DraftRequest(
        root=root, stale=stale, start=START, key=key, budget=budget, full_states=full_states
    )


def _first_commits(drafts: Drafts, root: NDArray[np.int64]) -> set[tuple[int, int]]:
    """(Position, token) of the drafts that are one commit away from the root."""
    one_away = drafts.states[drafts.depths == 1]
    return {(int(p), int(s[p])) for s in one_away for p in np.flatnonzero(s != root)}


def _stale(best: list[float], second: list[float]) -> Stale:
    """Positions whose two best tokens, 10 and 11, have given probabilities."""
    probs = np.full((LENGTH, STALE_TOP), 1e-6)
    probs[:, 0], probs[:, 1] = best, second
    return Stale(
        log_probs=np.log(probs).astype(np.float16),
        doubts=np.log(-np.log(probs[:, 0])).astype(np.float16),
        tokens=np.tile(10 + np.arange(STALE_TOP), (LENGTH, 1)),
        masked=np.ones(LENGTH, bool),
    )


def test_the_runner_up_is_drafted_only_where_the_best_token_has_less_than_0_6(
    model: OrderModel,
) -> None:
    request = _request(_stale([0.99, 0.61, 0.59, 0.5, 0.2], [0.009, 0.38, 0.4, 0.49, 0.19]))
    drafter = SpotDrafter(model, rule=GREEDY, mask_id=MASK_ID)
    drafts = drafter.propose([request])[0]
    best, runner_up = {(p, 10) for p in range(LENGTH)}, {(p, 11) for p in (2, 3, 4)}
    assert _first_commits(drafts, request.root) == best | runner_up


def test_the_best_token_weighs_by_its_survival_and_a_runner_up_by_its_probability(
    model: OrderModel,
) -> None:
    request = _request(_stale([0.5] * LENGTH, [0.25] * LENGTH))
    drafts = SpotDrafter(model, rule=GREEDY, mask_id=MASK_ID).propose([request])[0]
    first = drafts.depths == 1
    at_place = first & (drafts.states[:, 2] != MASK_ID)
    mass = {
        int(s[2]): float(m)
        for s, m in zip(drafts.states[at_place], drafts.masses[at_place], strict=True)
    }
    survival = 0.5 / (0.5 + 0.25)  # unfitted: a sigmoid of the margin
    assert mass[11] / mass[10] == pytest.approx(0.25 / survival, rel=1e-2)


@pytest.mark.parametrize(
    "rule",
    [
        Rule(temperature=1.0),
        Rule(temperature=0.7, top_k=5),
        Rule(temperature=1.5, top_p=0.8),
    ],
    ids=["plain", "top_k", "top_p"],
)
@pytest.mark.parametrize("key", [3, 2**64 - 5])
def test_the_hypothesis_is_the_draw_that_the_target_would_make_from_stale_conditionals(
    model: OrderModel, rule: Rule, key: int
) -> None:
    for seed in range(4):
        found = _conditionals(seed)
        request = _request(stale_of(found, [0])[0], committed=(1,), key=key)
        drafts = SpotDrafter(model, rule=rule, mask_id=MASK_ID).propose([request])[0]
        tokens = draw(
            all_of(found.logits),
            keys=torch.full((LENGTH,), signed(key)),
            positions=START + torch.arange(LENGTH),
            rule=rule,
        )
        expected = {(p, int(tokens[p])) for p in range(LENGTH) if p != 1}
        assert _first_commits(drafts, request.root) == expected


def test_a_draw_that_survives_more_surely_weighs_more(model: OrderModel) -> None:
    rule, request = Rule(temperature=1.0), _request(stale_of(_conditionals(0), [0])[0])
    masses = [
        SpotDrafter(model, rule=rule, mask_id=MASK_ID, survival=Survival(offset, 1.0))
        .propose([request])[0]
        .masses[0]
        for offset in (-3.0, 0.0, 3.0)
    ]
    assert masses[0] < masses[1] < masses[2]


def test_each_sequence_has_its_own_budget_and_its_own_tree(model: OrderModel) -> None:
    drafter = SpotDrafter(model, rule=GREEDY, mask_id=MASK_ID)
    requests = [
        _request(stale_of(_conditionals(seed), [0])[0], committed=(seed,), budget=budget)
        for seed, budget in enumerate((3, 0, 9))
    ]
    together = drafter.propose(requests)
    assert [len(drafts.states) for drafts in together] == [3, 0, 9]
    for request, drafts in zip(requests, together, strict=True):
        assert np.array_equal(drafts.states, drafter.propose([request])[0].states)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_committed_positions_are_never_changed(model: OrderModel, temperature: float) -> None:
    request = _request(stale_of(_conditionals(2), [0])[0], committed=(0, 3))
    drafter = SpotDrafter(model, rule=Rule(temperature=temperature), mask_id=MASK_ID)
    states = drafter.propose([request])[0].states
    assert len(states) > 0
    assert (states[:, [0, 3]] == 1).all()


@pytest.mark.parametrize("full_states", [False, True])
def test_full_blocks_are_drafted_only_where_they_are_of_use(
    model: OrderModel, full_states: bool
) -> None:
    request = _request(stale_of(_conditionals(1), [0])[0], full_states=full_states)
    states = SpotDrafter(model, rule=GREEDY, mask_id=MASK_ID).propose([request])[0].states
    assert bool((states != MASK_ID).all(1).any()) == full_states


def test_drafts_below_the_mass_floor_are_left_out(model: OrderModel) -> None:
    request = _request(stale_of(_conditionals(1), [0])[0])
    every = SpotDrafter(model, rule=GREEDY, mask_id=MASK_ID).propose([request])[0]
    options = SpotOptions(gamma=0.02)
    drafter = SpotDrafter(model, rule=GREEDY, mask_id=MASK_ID, options=options)
    some = drafter.propose([request])[0]
    assert 0 < len(some.states) == int((every.masses >= 0.02).sum()) < len(every.states)
