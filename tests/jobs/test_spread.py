"""Quantiles of a figure."""

from jobs.spread import Spread, spread_of


def test_quantiles_are_values_that_occur() -> None:
    assert spread_of([*range(1, 101)]) == Spread(p50=50, p90=90, p99=99, max=100)


def test_one_value_is_all_of_them_and_nothing_has_none() -> None:
    assert spread_of([7.5]) == Spread(p50=7.5, p90=7.5, p99=7.5, max=7.5)
    assert spread_of([]) is None
