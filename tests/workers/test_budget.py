import numpy as np
import pytest

from workers.budget import PROBE_EVERY, AutoBudget, FixedBudget, ForwardCost

UNITS = np.array([1.0, 64.0])


def _flat() -> AutoBudget:
    return AutoBudget(cost=ForwardCost(UNITS, np.ones(2)), draft_seconds=0.01)


def _proportional() -> AutoBudget:
    return AutoBudget(cost=ForwardCost(UNITS, UNITS.copy()), draft_seconds=0.01)


def test_a_fixed_budget_asks_and_takes_the_same_whatever_the_load() -> None:
    budget = FixedBudget(7)
    assert {budget.ask(n, 10 * n) for n in (1, 50)} == {7}
    assert budget.choose([np.ones(7), np.ones(3)], num_units=2) == [7, 3]


def test_where_forwards_are_free_the_gate_is_open() -> None:
    assert _flat().ask(1, 1) > 10


def test_where_a_draft_costs_a_forward_the_gate_is_shut_but_for_probes() -> None:
    budget = _proportional()
    asked = [budget.ask(8, 8) for _ in range(2 * PROBE_EVERY)]
    assert sum(a > 0 for a in asked) == 2


def test_a_costly_drafter_shuts_the_gate() -> None:
    budget = _flat()
    budget.draft_seconds = 1000.0
    assert budget.ask(1, 1) == 0


@pytest.mark.parametrize("seed", range(8))
def test_the_best_prefix_of_the_sorted_candidates_is_taken(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cost = ForwardCost(np.arange(1.0, 33.0), np.cumsum(rng.uniform(0.0, 0.2, 32)) + 1)
    budget = AutoBudget(cost=cost, draft_seconds=0.0)
    masses = [np.sort(rng.uniform(size=n))[::-1] for n in (4, 0, 6)]
    taken = budget.choose(masses, num_units=3)
    everything = np.sort(np.concatenate(masses))[::-1]
    rates = [(3 + everything[:n].sum()) / float(cost(3 + n)) for n in range(11)]
    assert sum(taken) == int(np.argmax(rates))
    chosen = np.sort(np.concatenate([m[:n] for m, n in zip(masses, taken, strict=True)]))[::-1]
    assert np.array_equal(chosen, everything[: sum(taken)])


def test_drafts_that_are_never_accepted_shut_the_gate() -> None:
    budget = _flat()
    for _ in range(400):
        budget.choose([np.full(5, 0.9)], num_units=1)
        budget.observe_round(num_units=6, seconds=1.0, mass=4.5, accepted=0)
    assert budget.ask(1, 1) == 0


def test_costs_follow_the_machine() -> None:
    budget = _flat()
    for _ in range(200):
        budget.observe_round(num_units=4, seconds=3.0, mass=0.0, accepted=0)
    assert float(budget.cost(4)) == pytest.approx(3.0, rel=0.01)
