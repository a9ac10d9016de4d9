"""What to draft and what of it to evaluate."""

from typing import Any

import numpy as np
import pytest

from tests.workers.drafted import blocks, costs, drafted, root
from workers.costs import LinearCost
from workers.draft_plan import Plan, best_plan, best_prefix, sizes_of
from workers.masses import NUM_DEPTHS, NUM_RANKS

FLAT = [1.0] * 64
STEEP = [float(n) for n in range(1, 65)]


def _worth(num: int, *chain: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Roots with one draft at each depth."""
    worth = np.zeros((num, NUM_DEPTHS, NUM_RANKS))
    worth[:, : len(chain), 0] = chain
    return worth


def _plan(num: int, *chain: float, table: list[float], level_s: float = 0.0) -> Plan:
    plan = best_plan(
        [root(i) for i in range(num)],
        _worth(num, *chain),
        base=blocks(num),
        num_sequences=num,
        costs=costs(table=table, level_s=level_s, draft_s=1e-6),
    )
    assert plan is not None
    return plan


def test_where_forwards_are_flat_everything_worth_something_is_planned() -> None:
    plan = _plan(2, 0.9, 0.8, 0.7, table=FLAT)
    assert plan.counts.tolist() == [3, 3]
    assert plan.depths.tolist() == [3, 3]
    assert plan.rate == pytest.approx(2 + 2 * 2.4, rel=1e-3)


def test_where_a_draft_costs_a_root_no_plan_beats_none() -> None:
    assert _plan(4, 0.9, 0.8, table=STEEP).rate < 1.0


def test_drafts_are_planned_no_further_ahead_than_they_are_of_use() -> None:
    for room, depths in ((3, [3]), (2, [2])):
        plan = best_plan(
            [root(masked=3)._replace(room=room)],
            _worth(1, 0.9, 0.8, 0.7),
            base=blocks(1),
            num_sequences=1,
            costs=costs(table=FLAT),
        )
        assert plan is not None
        assert plan.depths.tolist() == depths
    last = [root(masked=1)._replace(room=0)]
    nothing = best_plan(
        last, _worth(1, 0.9), base=blocks(1), num_sequences=1, costs=costs(table=FLAT)
    )
    assert nothing is None


def test_a_costly_level_is_left_out() -> None:
    assert _plan(1, 0.9, 0.8, 0.7, table=FLAT, level_s=1.0).depths.tolist() == [1]
    assert _plan(1, 0.9, 0.8, 0.7, table=FLAT, level_s=0.1).depths.tolist() == [3]


def test_a_plan_takes_the_best_roots_first() -> None:
    worth = _worth(2, 0.5)
    worth[1, 0, 0] = 0.9
    step = [1.0, 1.0, 1.0, 9.0, 9.0, 9.0]  # room for one draft
    plan = best_plan(
        [root(0), root(1)], worth, base=blocks(2), num_sequences=2, costs=costs(table=step)
    )
    assert plan is not None
    assert plan.counts.tolist() == [0, 1]


def test_nobody_drafts_deeper_than_there_are_masked_positions() -> None:
    plan = best_plan(
        [root(masked=2)],
        _worth(1, 0.9, 0.9, 0.9),
        base=blocks(1),
        num_sequences=1,
        costs=costs(table=FLAT),
    )
    assert plan is not None
    assert plan.counts.tolist() == [2]


@pytest.mark.parametrize("seed", range(8))
def test_the_best_prefix_of_the_sorted_candidates_is_taken(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = (np.cumsum(rng.uniform(0.0, 0.2, 32)) + 1).tolist()
    masses = [np.sort(rng.uniform(size=n))[::-1] for n in (4, 0, 6)]
    found = [drafted(m, row=i) for i, m in enumerate(masses)]
    rate = 2.0
    taken = best_prefix(
        found, masses, rate=rate, base=blocks(3), num_sequences=3, costs=costs(table=table)
    )
    everything = np.sort(np.concatenate(masses))[::-1]
    profits = [everything[:n].sum() - rate * table[2 + n] for n in range(11)]
    assert sum(taken) == int(np.argmax(profits))
    chosen = np.sort(np.concatenate([m[:n] for m, n in zip(masses, taken, strict=True)]))[::-1]
    assert np.array_equal(chosen, everything[: sum(taken)])


def test_a_later_prefix_may_pay_where_an_earlier_one_does_not() -> None:
    step = [1.0, 1.4, 1.4, 1.4, 9.0]
    worth = [np.array([0.3, 0.3, 0.3])]
    taken = best_prefix(
        [drafted(worth[0])],
        worth,
        rate=1.0,
        base=blocks(1),
        num_sequences=1,
        costs=costs(table=step),
    )
    assert taken == [3]


def test_what_the_host_does_for_a_draft_counts() -> None:
    dear = costs(table=FLAT)
    dear.host = LinearCost(coefficients=np.array([0.0, 0.0, 0.0, 1.0]))
    worth = [np.array([0.9])]
    args: dict[str, Any] = {"rate": 1.0, "base": blocks(1), "num_sequences": 1}
    assert best_prefix([drafted(worth[0])], worth, **args, costs=costs(table=FLAT)) == [1]
    assert best_prefix([drafted(worth[0])], worth, **args, costs=dear) == [0]


def test_a_draft_that_fills_its_block_costs_another_one_unless_it_is_accepted() -> None:
    sizes = sizes_of([root(masked=3)], np.zeros(2, np.int64), np.array([0.0, 0.25]), length=32)
    assert np.array_equal(sizes.positions, [32.0, 40.0])
    assert np.array_equal(sizes.rows, [3.0, 32.0])
