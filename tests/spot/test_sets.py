"""SPOT-Sets: candidate sets against enumeration, the trees, and outputs that they never change."""

from itertools import combinations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from spot.conditionals import stale_of
from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.base import STALE_TOP, DraftRequest, Stale
from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.features import NUM_FEATURES
from spot.drafters.set_model import SetModel, doubt_of
from spot.drafters.sets import (
    SetCalibration,
    SetLaws,
    SetsDrafter,
    StaleSetsDrafter,
    likeliest_sets,
)
from spot.limits import Limits
from spot.targets.paged import PagedTarget
from spot.transition import Rule
from tests.spot.drafting import conditionals_of
from tests.twins import BLOCK_LENGTH, PAD_ID, STOP_ID

LENGTH, MASK_ID = 6, 99
THRESHOLD = Rule(name="threshold", tau=0.6)
SHAPE = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)


def _laws(seed: int, *, closed: tuple[int, ...] = (), shift: float = 0.0) -> SetLaws:
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2.0, size=(1, LENGTH)).astype(np.float32) + np.float32(shift)
    order = rng.uniform(size=(1, LENGTH)).astype(np.float32)
    logits[0, list(closed)], order[0, list(closed)] = -np.inf, 0.0
    return SetLaws(logits, order / order.sum())


def _enumerated(laws: SetLaws) -> dict[bytes, float]:
    """Mass of every set, the empty one's handed to the single positions."""
    passes = 1 / (1 + np.exp(-laws.membership[0].astype(np.float64)))
    masses = {}
    for size in range(LENGTH + 1):
        for members in combinations(range(LENGTH), size):
            member = np.isin(np.arange(LENGTH), members)
            masses[member.tobytes()] = float(np.where(member, passes, 1 - passes).prod())
    empty = masses.pop(np.zeros(LENGTH, bool).tobytes())
    for position in range(LENGTH):
        masses[(np.arange(LENGTH) == position).tobytes()] += empty * laws.order[0, position]
    return masses


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shift", [-4.0, 0.0, 2.0])
def test_with_enough_flips_all_sets_have_their_enumerated_mass(seed: int, shift: float) -> None:
    laws = _laws(seed, shift=shift)
    sets = likeliest_sets(laws, flips=LENGTH)
    found = {m.tobytes(): float(x) for m, x in zip(sets.member[0], sets.mass[0], strict=True) if x}
    expected = _enumerated(laws)
    assert found.keys() == {name for name, mass in expected.items() if mass > 1e-30}
    assert all(found[name] == pytest.approx(expected[name], rel=1e-4) for name in found)
    assert sum(found.values()) == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_few_flips_keep_the_likeliest_sets(seed: int) -> None:
    laws = _laws(seed)
    sets = likeliest_sets(laws, flips=3)
    best = sorted(_enumerated(laws).items(), key=lambda item: -item[1])[:3]
    found = {m.tobytes(): float(x) for m, x in zip(sets.member[0], sets.mass[0], strict=True)}
    for name, mass in best:
        assert found[name] == pytest.approx(mass, rel=1e-4)


def test_closed_positions_are_in_no_set() -> None:
    sets = likeliest_sets(_laws(2, closed=(1, 4)), flips=LENGTH)
    assert not sets.member[0][sets.mass[0] > 0][:, [1, 4]].any()
    assert sets.mass[0].sum() == pytest.approx(1.0, rel=1e-4)


def _stale(seed: int) -> Stale:
    logits = 3 * torch.randn(LENGTH, STALE_TOP, generator=torch.Generator().manual_seed(seed))
    conditionals = conditionals_of(logits)
    return stale_of(conditionals, [0])[0]


def _request(stale: Stale, *, budget: int = 12, full: bool = True) -> DraftRequest:
    root = np.full(LENGTH, MASK_ID, np.int64)
    return DraftRequest(root=root, stale=stale, start=0, key=1, budget=budget, full_states=full)


def _model() -> SetModel:
    torch.manual_seed(0)
    return SetModel(SHAPE).eval().requires_grad_(False)


def _masked(states: NDArray[np.int64]) -> NDArray[np.bool_]:
    masked: NDArray[np.bool_] = states == MASK_ID
    return masked


def test_trees_keep_to_the_budget_and_hold_distinct_states() -> None:
    drafter = SetsDrafter(_model(), rule=THRESHOLD, mask_id=MASK_ID)
    for budget in (1, 5, 12):
        drafts = drafter.propose([_request(_stale(0), budget=budget)])[0]
        assert len(drafts.states) == budget
        assert len({s.tobytes() for s in drafts.states}) == budget
        assert (np.diff(drafts.masses) <= 0).all()


def test_full_states_are_drafted_only_where_they_are_of_use() -> None:
    drafter = SetsDrafter(_model(), rule=THRESHOLD, mask_id=MASK_ID)
    for full in (False, True):
        states = drafter.propose([_request(_stale(0), budget=60, full=full)])[0].states
        assert bool((~_masked(states)).all(1).any()) == full


def test_a_higher_threshold_lets_fewer_positions_pass() -> None:
    model, batch = _model(), torch.ones(1, LENGTH, dtype=torch.bool)
    features = torch.randn(1, LENGTH, NUM_FEATURES, generator=torch.Generator().manual_seed(3))
    passing = []
    for tau in (0.5, 0.9, 0.99):
        law = model(
            features,
            doubts=torch.zeros(1, LENGTH),
            masked=batch,
            taken=~batch,
            threshold=torch.tensor([[doubt_of(tau)]]),
        )
        passing.append(float(law.membership.sigmoid().sum()))
    assert passing[0] > passing[1] > passing[2]


def test_the_calibration_shifts_memberships() -> None:
    sizes = []
    for bias in (-20.0, 20.0):
        drafter = SetsDrafter(
            _model(), rule=THRESHOLD, mask_id=MASK_ID, calibration=SetCalibration(bias=bias)
        )
        heaviest = drafter.propose([_request(_stale(0), budget=1)])[0].states[0]
        sizes.append(int((~_masked(heaviest)).sum()))
    assert sizes == [1, LENGTH]


def test_stale_sets_hold_what_passes_by_stale_confidence() -> None:
    stale = _stale(4)
    passes = stale.doubts.astype(np.float32) < doubt_of(0.6)
    assert 1 < passes.sum() < LENGTH
    drafts = StaleSetsDrafter(rule=THRESHOLD, mask_id=MASK_ID).propose([_request(stale)])[0]
    first = drafts.states[drafts.depths == 1]
    assert len(first) == 1
    assert np.array_equal(~_masked(first[0]), passes)
    assert np.array_equal(first[0][passes], stale.tokens[passes, 0])
    second = drafts.states[drafts.depths == 2]
    leader = np.where(passes, np.inf, stale.doubts).argmin()
    assert np.array_equal(np.flatnonzero(~_masked(second[0]) & ~passes), [leader])


def test_stale_sets_take_the_surest_position_if_none_passes() -> None:
    stale = _stale(4)
    rule = Rule(name="threshold", tau=0.9999999)
    drafts = StaleSetsDrafter(rule=rule, mask_id=MASK_ID).propose([_request(stale)])[0]
    first = drafts.states[drafts.depths == 1]
    assert np.flatnonzero(~_masked(first[0])).tolist() == [int(stale.doubts.argmin())]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", ["learned", "stale"])
@pytest.mark.parametrize("num_prompt", [1, BLOCK_LENGTH - 1, BLOCK_LENGTH])
def test_drafted_sets_never_change_the_output(
    twin: PagedTarget, method: str, temperature: float, num_prompt: int
) -> None:
    rule = Rule(name="threshold", tau=0.3, temperature=temperature)
    mask_id = twin.spec.mask_id
    drafter: SetsDrafter | StaleSetsDrafter = StaleSetsDrafter(rule=rule, mask_id=mask_id)
    if method == "learned":
        drafter = SetsDrafter(_model(), rule=rule, mask_id=mask_id)
    limits = Limits(prompt_tokens=num_prompt, max_tokens=20, stop_ids=frozenset({STOP_ID, PAD_ID}))
    sample = Sample(prompt_ids=tuple(range(40, 40 + num_prompt)), key=5, limits=limits)
    plain = ReferenceDecoder(twin, rule=rule).decode(sample)
    drafted = ReferenceDecoder(twin, rule=rule, drafter=drafter, budget=6).decode(sample)
    assert drafted.trajectory.moves == plain.trajectory.moves
    assert drafted.trajectory.cost.drafted > 0
    assert drafted.trajectory.cost.nfe <= plain.trajectory.cost.nfe


def test_the_strict_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="threshold rule only"):
        StaleSetsDrafter(rule=Rule(), mask_id=MASK_ID)
