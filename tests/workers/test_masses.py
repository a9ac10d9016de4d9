"""What drafts are worth: realised acceptance, and profiles of recent masses."""

import numpy as np
import pytest

from spot.drafters.base import Drafts
from workers.masses import (
    CHILD,
    NUM_DEPTHS,
    NUM_RANKS,
    Calibration,
    Discount,
    MassProfile,
    bin_of,
    by_depth,
    levels_of,
    rising,
)


def _drafts(masses: list[float], depths: list[int]) -> Drafts:
    states = np.zeros((len(masses), 4), np.int64)
    return Drafts(states, np.array(masses, np.float32), np.array(depths))


def test_before_anything_is_seen_a_mass_is_worth_itself() -> None:
    masses = np.linspace(0.0, 0.9, 10)
    assert Calibration()(masses) == pytest.approx(masses, abs=0.03)


def test_worth_follows_realised_acceptance() -> None:
    calibration, rng = Calibration(), np.random.default_rng(0)
    for _ in range(600):
        masses = rng.uniform(0.0, 1.0, 8)
        calibration.observe(masses, rng.uniform(0.0, 1.0, 8) < 0.5 * masses)
    assert calibration(np.array([0.2, 0.6, 0.9])) == pytest.approx([0.1, 0.3, 0.45], abs=0.07)


def test_worth_keeps_the_order_of_masses_whatever_is_seen() -> None:
    calibration = Calibration()
    for _ in range(300):  # the heavier, the less often reached
        masses = np.array([0.1, 0.5, 0.95])
        calibration.observe(masses, np.array([True, False, False]))
    worth = calibration(np.linspace(0.0, 1.0, 50))
    assert (np.diff(worth) >= 0.0).all()


def test_bins_that_contradict_their_neighbours_are_pooled_by_weight() -> None:
    values, weights = np.array([0.1, 0.8, 0.2, 0.9]), np.array([1.0, 1.0, 3.0, 1.0])
    assert rising(values, weights) == pytest.approx([0.1, 0.35, 0.35, 0.9])


def test_the_inverse_finds_the_mass_of_a_worth() -> None:
    calibration = Calibration()
    calibration.observe(np.full(50, 0.55), np.ones(50, bool))
    for worth in (0.05, 0.4, 0.8):
        mass = calibration.inverse(worth)
        assert calibration(np.array(mass)) == pytest.approx(worth, abs=1e-6)


def test_positions_fall_into_bins_by_powers_of_two() -> None:
    assert [bin_of(masked) for masked in (1, 2, 3, 4, 7, 8, 32)] == [0, 1, 1, 2, 2, 3, 5]


def test_a_profile_learns_from_the_roots_of_its_bin_only() -> None:
    profile, before = MassProfile(), MassProfile()
    found = np.full((NUM_DEPTHS, NUM_RANKS), 0.01)
    for _ in range(200):
        profile.observe(20, found, bound=0.0)
    ones = np.ones(2)
    learnt, other = profile.expect([20, 3], ones)
    assert learnt == pytest.approx(found, abs=1e-3)
    assert np.array_equal(other, before.expect([20, 3], ones)[1])


def test_what_nobody_looked_for_stays_as_it_was() -> None:
    profile, before = MassProfile(), MassProfile()
    found = by_depth(_drafts([0.5], [1]), np.array([0.5]), levels=1, depth=1)
    profile.observe(20, found, bound=0.0)
    assert np.array_equal(profile.worth[:, 1:], before.worth[:, 1:])
    assert profile.worth[4, 0, 1] < before.worth[4, 0, 1]  # looked for, and nothing was there


def test_no_draft_is_expected_to_be_worth_more_than_its_parent() -> None:
    profile = MassProfile()
    found = by_depth(_drafts([0.1], [1]), np.array([0.1]), levels=1, depth=1)
    for _ in range(200):
        profile.observe(20, found, bound=0.0)
    expected = profile.expect([20], np.ones(1))[0]
    assert expected.max() == pytest.approx(0.1, rel=0.01)
    assert (np.diff(expected, axis=0) <= 0.0).all()


def test_a_sequences_lean_scales_what_is_expected_of_it() -> None:
    heavy, light = MassProfile().expect([20, 20], np.array([1.2, 0.6]))
    assert light == pytest.approx(heavy / 2)
    assert MassProfile().expect([20], np.array([9.0])).max() == 1.0


def test_levels_end_where_growing_on_did_not_pay() -> None:
    drafts = _drafts([0.9, 0.5, 0.2], [1, 2, 2])
    assert levels_of(drafts, depth=5, deeper=0.4) == 3
    assert levels_of(drafts, depth=5, deeper=0.6) == 2
    assert levels_of(drafts, depth=2, deeper=0.0) == 2
    assert levels_of(_drafts([], []), depth=5, deeper=0.0) == 1


def test_drafts_are_sorted_by_depth_and_what_was_not_grown_is_guessed() -> None:
    worth = np.array([0.9, 0.5, 0.2])
    table = by_depth(_drafts([0.9, 0.5, 0.2], [1, 2, 2]), worth, levels=2, depth=3)
    assert table[0, 0] == 0.9
    assert table[1, :2].tolist() == [0.5, 0.2]
    assert np.isneginf(table[0, 1:]).all()
    assert table[2, :2] == pytest.approx([CHILD * 0.5, CHILD * 0.2])
    assert np.isnan(table[3:]).all()


def test_a_discount_follows_what_came_true_and_never_raises_a_worth() -> None:
    discount = Discount()
    assert discount.factor == 1.0
    for _ in range(50):
        discount.observe(np.array([0.5, 0.3]), np.array([True, True]))
    assert discount.factor == 1.0
    for _ in range(200):
        discount.observe(np.array([0.5, 0.3]), np.array([False, False]))
    low = discount.factor
    assert low < 0.2
    discount.observe(np.zeros(0), np.zeros(0, bool))  # a round without drafts tells nothing
    assert discount.factor == low


def test_a_discount_that_is_forgotten_goes_back_to_belief() -> None:
    discount = Discount(expected=10.0, accepted=2.0)
    before = discount.factor
    discount.forget(0.5)
    assert before < discount.factor < 1.0
    discount.forget(1.0)
    assert discount.factor == 1.0
