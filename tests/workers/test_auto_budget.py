"""The load-aware budget: who drafts under which load, what is evaluated, and what is learnt."""

import numpy as np
import pytest

from tests.workers.drafted import blocks, costs, drafted, root
from workers.auto_budget import (
    FAMILIAR,
    MOST_SHUT_ROUNDS,
    PROBE,
    QUIET_ROUNDS,
    SHUT_ROUNDS,
    AutoBudget,
    ShutLoads,
)
from workers.budget import Ask, Root, Spent
from workers.masses import Discount, bin_of

FLAT = [1.0] * 64
SLOPED = [1.0 + 0.1 * n for n in range(64)]
STEEP = [float(n) for n in range(1, 65)]


def _budget(table: list[float], *, level_s: float = 0.001) -> AutoBudget:
    """A budget that has seen something of every kind of root."""
    budget = AutoBudget(costs=costs(table=table, level_s=level_s, draft_s=1e-6))
    budget.profile.seen[:] = FAMILIAR
    budget.unfamiliar.clear()
    return budget


def _roots(num: int) -> list[Root]:
    return [root(row) for row in range(num)]


def _ask(budget: AutoBudget, num: int) -> list[Ask]:
    return budget.ask(_roots(num), base=blocks(num), num_sequences=num)


def _spent(num: int, *, seconds: float, masses: list[float], accepted: list[bool]) -> Spent:
    return Spent(
        size=blocks(num + len(masses)),
        target_s=seconds,
        drafter_s=0.0,
        host_s=0.0,
        num_sequences=num,
        masses=np.array(masses),
        accepted=np.array(accepted, bool),
    )


def _choose(budget: AutoBudget, masses: list[float], *, ask: Ask) -> list[int]:
    found = drafted(np.array(masses), ask=ask)
    return budget.choose([found], base=blocks(1), num_sequences=1, seconds=0.001)


def test_where_forwards_are_flat_everybody_drafts() -> None:
    assert all(a.drafts > 3 and a.depth > 2 for a in _ask(_budget(FLAT), 3))


def test_where_a_draft_costs_a_root_nobody_drafts() -> None:
    assert [a.drafts for a in _ask(_budget(STEEP), 8)] == [0] * 8


def test_a_costly_drafter_shuts_the_gate() -> None:
    assert _ask(_budget(FLAT, level_s=100.0), 1) == [Ask(0)]


def test_without_roots_nothing_is_asked() -> None:
    assert _budget(FLAT).ask([], base=blocks(3), num_sequences=3) == []


def test_probes_take_turns_and_less_than_a_thousandth_of_the_time() -> None:
    budget, probes, cost = _budget(STEEP), 0, 0.0
    seen = set()
    for _ in range(10_000):
        asks = _ask(budget, 8)
        asked = [i for i, a in enumerate(asks) if a.drafts]
        seen.update(asked)
        probes += len(asked)
        seconds = 8.0 + (PROBE.drafts if asked else 0)
        cost += seconds - 8.0
        budget.observe(_spent(8, seconds=seconds, masses=[], accepted=[]))
    assert probes > 5
    assert len(seen) > 5
    assert cost < 0.001 * 10_000 * 8.0


def test_a_probe_is_evaluated_whatever_it_found() -> None:
    budget = _budget(STEEP)
    budget.probe_credit_s = 1e9
    (ask,) = _ask(budget, 1)
    assert ask == PROBE
    budget.expected = 10.0  # at the price of a second nothing would be taken
    assert _choose(budget, [0.01, 0.001], ask=ask) == [2]


def test_the_least_known_root_is_probed_at_once_whatever_the_price() -> None:
    budget = _budget(STEEP)
    budget.profile.seen[:2] = FAMILIAR - 1.0, FAMILIAR - 2.0
    budget.unfamiliar |= {0, 1}
    roots = [root(0, masked=20), root(1, masked=1), root(2, masked=2)]
    asks = budget.ask(roots, base=blocks(3), num_sequences=3)
    assert [a.drafts for a in asks] == [0, 0, PROBE.drafts]


def _probed(budget: AutoBudget, *, accepted: bool) -> list[Ask]:
    """What is asked after a probe that nobody would have made but for its credit."""
    assert [a.drafts for a in _ask(budget, 8)] == [0] * 8
    price = budget.probe_price_s
    budget.probe_credit_s = 1.01 * price
    asks = _ask(budget, 8)
    ask = next(a for a in asks if a.drafts)
    found = drafted(np.array([0.9, 0.8]), ask=ask)
    budget.choose([found], base=blocks(8), num_sequences=8, seconds=0.001)
    budget.observe(_spent(8, seconds=16.0, masses=[0.9, 0.8], accepted=[accepted, accepted]))
    return _ask(budget, 8)


def test_a_probe_that_paid_for_itself_is_followed_by_another() -> None:
    assert any(a.drafts for a in _probed(_budget(STEEP), accepted=True))


def test_a_probe_that_brought_nothing_is_not() -> None:
    assert not any(a.drafts for a in _probed(_budget(STEEP), accepted=False))


def test_a_load_that_was_found_shut_is_known_at_a_glance_until_a_probe_is_due() -> None:
    budget, masked = _budget(STEEP), [r.masked for r in _roots(8)]
    budget.probe_price_s = 1.0
    assert not budget.is_shut(masked, num_sequences=8)
    assert [a.drafts for a in _ask(budget, 8)] == [0] * 8
    assert budget.is_shut(masked, num_sequences=8)
    assert not budget.is_shut(masked, num_sequences=9)
    assert not budget.is_shut([1] * 8, num_sequences=8)
    budget.probe_credit_s = 1.01 * budget.probe_price_s
    assert not budget.is_shut(masked, num_sequences=8)
    budget.probe_credit_s = 0.0
    budget.unfamiliar.add(bin_of(masked[0]))
    assert not budget.is_shut(masked, num_sequences=8)


def test_a_shut_gate_is_believed_the_longer_the_more_often_it_was_found_shut() -> None:
    shut, load = ShutLoads(), (8, 40)
    shut.remember(load, now=0)
    assert shut.holds(load, now=SHUT_ROUNDS)
    assert not shut.holds(load, now=SHUT_ROUNDS + 1)
    shut.remember(load, now=100)
    assert shut.holds(load, now=100 + 2 * SHUT_ROUNDS)
    for _ in range(10):
        shut.remember(load, now=1000)
    assert not shut.holds(load, now=1000 + MOST_SHUT_ROUNDS + 1)
    shut.forget(load)
    assert not shut.holds(load, now=1000)
    shut.remember(load, now=2000)
    assert not shut.holds(load, now=2000 + SHUT_ROUNDS + 1)


def test_drafts_that_are_never_accepted_shut_the_gate() -> None:
    budget = _budget([1.0 + 0.2 * n for n in range(64)])
    for _ in range(400):
        (ask,) = _ask(budget, 1)
        if ask.drafts:
            _choose(budget, [0.9, 0.8], ask=ask)
        budget.observe(_spent(1, seconds=1.4, masses=[0.9, 0.8], accepted=[False, False]))
    assert _ask(budget, 1)[0].drafts in (0, PROBE.drafts)
    assert budget.calibration(np.array(0.9)) < 0.2


def test_masses_that_come_true_more_often_than_promised_open_it() -> None:
    budget = _budget([1.0 + 0.6 * n for n in range(64)])
    for _ in range(300):
        budget.observe(_spent(1, seconds=1.6, masses=[0.45], accepted=[True]))
        budget.profile.observe(
            20, np.full((6, 8), float(budget.calibration(np.array(0.45)))), bound=0.0
        )
    assert _ask(budget, 1)[0].drafts > 0


def test_a_sequence_whose_drafts_are_light_drafts_less_than_the_others() -> None:
    budget = _budget([1.0 + 0.28 * n for n in range(64)])
    budget.leans = {(0, 0, 0): 0.7, (0, 1, 0): 1.2}
    light, heavy = _ask(budget, 2)
    assert light.drafts < heavy.drafts


def test_samples_that_left_are_forgotten() -> None:
    budget = _budget(FLAT)
    _ask(budget, 5)
    _ask(budget, 2)
    assert set(budget.leans) == {(0, 0, 0), (0, 1, 0)}


def test_expectations_that_do_not_come_true_make_seconds_cheaper() -> None:
    budget = _budget(FLAT)
    (ask,) = _ask(budget, 1)
    before = budget.rate
    for _ in range(50):
        _choose(budget, [0.9], ask=ask)
        budget.observe(_spent(1, seconds=4.0, masses=[0.9], accepted=[True]))
    assert budget.rate < 0.8 * before


def test_drafts_that_fail_at_one_load_shut_the_gate_there_and_nowhere_else() -> None:
    budget = _budget(SLOPED, level_s=0.05)
    for _ in range(300):
        budget.observe(_spent(1, seconds=SLOPED[1], masses=[0.5], accepted=[False]))
        budget.observe(_spent(8, seconds=SLOPED[8], masses=[0.5], accepted=[True]))
    assert [a.drafts for a in _ask(budget, 1)] == [0]
    assert all(a.drafts for a in _ask(budget, 8))
    few = budget.discount(1).factor
    for _ in range(20 * QUIET_ROUNDS):
        budget.observe(_spent(1, seconds=SLOPED[0], masses=[], accepted=[]))
    assert budget.discount(1).factor > 2 * few  # in time it is tried again


@pytest.mark.parametrize(("table", "level_s"), [(SLOPED, 1e-6), (FLAT, 0.02)])
def test_where_drafts_fail_only_heavier_ones_are_asked_for(
    table: list[float], level_s: float
) -> None:
    budget = _budget(table, level_s=level_s)
    (before,) = _ask(budget, 1)
    budget.discounts[1] = Discount(expected=2.0, accepted=1.0)
    (after,) = _ask(budget, 1)
    bound = "floor" if table is SLOPED else "deeper"  # forwards cost, or levels do
    assert getattr(after, bound) > 1.2 * getattr(before, bound) > 0.0


def test_where_drafts_fail_fewer_are_evaluated() -> None:
    budget = _budget(SLOPED)
    budget.expected = 1.0  # so a draft must be worth a tenth
    ask = Ask(4, depth=1)
    assert _choose(budget, [0.9, 0.5, 0.25, 0.2], ask=ask) == [4]
    budget.discounts[1] = Discount(expected=3.0, accepted=1.0)
    assert _choose(budget, [0.9, 0.5, 0.25, 0.2], ask=ask) == [2]


def test_levels_and_calls_of_the_drafter_are_relearnt() -> None:
    budget = _budget(FLAT)
    (ask,) = _ask(budget, 1)
    for _ in range(200):
        budget.choose(
            [drafted(np.array([0.9, 0.8]), ask=ask)], base=blocks(1), num_sequences=1, seconds=0.5
        )
    assert float(budget.costs.drafter(1, 3, 2)) == pytest.approx(0.5, rel=0.05)
