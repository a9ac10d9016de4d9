"""What parts of a round cost: measured tables and lines that follow the machine."""

import numpy as np
import pytest

from workers.costs import ForwardCost, ForwardSize, LinearCost, unit_size


def _cost() -> ForwardCost:
    return ForwardCost(
        positions=np.array([32.0, 64.0, 128.0]),
        seconds=np.array([1.0, 2.0, 6.0]),
        pair_s=0.001,
        row_s=0.1,
    )


@pytest.mark.parametrize(
    ("positions", "seconds"), [(16, 1.0), (32, 1.0), (48, 1.5), (96, 4.0), (128, 6.0), (192, 10.0)]
)
def test_positions_cost_what_the_table_says_and_go_on_along_its_last_slope(
    positions: float, seconds: float
) -> None:
    assert float(_cost()(ForwardSize(positions))) == pytest.approx(seconds)


def test_pairs_and_rows_are_added() -> None:
    assert float(_cost()(ForwardSize(32.0, 500.0, 4.0))) == pytest.approx(1.0 + 0.5 + 0.4)


def test_a_block_attends_to_its_prefix_and_itself() -> None:
    assert unit_size(length=32, context=96, masked=5) == (32.0, 32 * 32 * 4.0, 5.0)


def test_costs_follow_the_machines_speed_at_every_size() -> None:
    cost = _cost()
    for _ in range(200):
        cost.observe(ForwardSize(32.0), 3.0)
    assert float(cost(ForwardSize(32.0))) == pytest.approx(3.0, rel=0.01)
    assert float(cost(ForwardSize(128.0))) > 10.0


def test_the_shape_of_the_table_is_learnt_where_forwards_are_seen() -> None:
    cost = _cost()
    for _ in range(2000):
        cost.observe(ForwardSize(32.0), 1.0)
        cost.observe(ForwardSize(128.0), 3.0)  # half of what was profiled
    ratio = float(cost(ForwardSize(128.0)) / cost(ForwardSize(32.0)))
    assert ratio == pytest.approx(3.0, rel=0.15)


def test_a_single_outlier_moves_little() -> None:
    cost, line = _cost(), LinearCost(coefficients=np.array([1.0, 1.0]))
    cost.observe(ForwardSize(32.0), 1000.0)
    line.observe(1.0, 1.0, seconds=1000.0)
    assert float(cost(ForwardSize(32.0))) < 1.2
    assert float(line(1.0, 1.0)) < 2.5


def test_a_linear_cost_learns_its_coefficients_and_none_below_zero() -> None:
    rng, line = np.random.default_rng(0), LinearCost(coefficients=np.array([1.0, 1.0, 1.0]))
    for _ in range(4000):
        levels, drafts = float(rng.integers(1, 8)), float(rng.integers(1, 30))
        line.observe(1.0, levels, drafts, seconds=2.0 * levels + 0.1 * drafts)
    assert float(line(1, 4, 10)) == pytest.approx(9.0, rel=0.03)
    assert line.coefficients == pytest.approx([0.0, 2.0, 0.1], abs=0.3)
    assert (line.coefficients >= 0.0).all()


def test_a_line_takes_arrays_of_counts() -> None:
    line = LinearCost(coefficients=np.array([1.0, 10.0]))
    assert np.array_equal(line(1, np.array([[1], [2]])), [[11.0], [21.0]])
