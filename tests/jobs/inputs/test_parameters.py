"""A row's own settings, and what they cannot be."""

from typing import Any

import pytest

from jobs.inputs.base import RowTroubleError
from jobs.inputs.parameters import Parameters, row_parameters
from manifests.job_input import Columns

COLUMNS = Columns(max_tokens="n", temperature="t", seed="s")


def read(values: dict[str, Any], *, min_tokens: int = 0) -> Parameters:
    return row_parameters(values, COLUMNS, min_tokens=min_tokens)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"n": 5, "t": 0.5, "s": 7}, (5, 0.5, 7)),
        ({"n": "5", "t": "0.5", "s": "7"}, (5, 0.5, 7)),
        ({"n": 5.0, "t": 1, "s": 2**63 - 1}, (5, 1.0, 2**63 - 1)),
        ({"n": 5, "t": 0, "s": 0}, (5, 0.0, 0)),
        ({"n": None, "t": None, "s": None}, (None, None, None)),
        ({"n": "", "t": float("nan"), "s": ""}, (None, None, None)),
        ({}, (None, None, None)),
    ],
)
def test_they_are_numbers_or_their_text_and_may_be_missing(
    values: dict[str, Any], found: tuple[Any, ...]
) -> None:
    assert read(values) == Parameters(*found)


def test_columns_that_are_not_named_mean_nothing() -> None:
    assert row_parameters({"n": 5}, Columns()) == Parameters()


@pytest.mark.parametrize(
    ("values", "error_class", "words"),
    [
        ({"n": 0}, "OutOfRange", "column `n` is 0, and must be from 1 to"),
        ({"n": 2**31}, "OutOfRange", "column `n`"),
        ({"n": 1.5}, "WrongType", "column `n` must be a whole number"),
        ({"n": True}, "WrongType", "column `n` must be a whole number"),
        ({"n": "many"}, "WrongType", "column `n` must be a whole number"),
        ({"n": [1]}, "WrongType", "column `n` must be a whole number"),
        ({"t": -0.1}, "OutOfRange", "column `t` is -0.1, and must not be below 0"),
        ({"t": "warm"}, "WrongType", "column `t` must be a number"),
        ({"t": float("inf")}, "WrongType", "column `t` must be a number"),
        ({"s": -1}, "OutOfRange", "column `s` is -1, and must be from 0 to"),
        ({"s": 2**63}, "OutOfRange", "column `s`"),
    ],
)
def test_what_cannot_be_had_is_trouble_of_the_row(
    values: dict[str, Any], error_class: str, words: str
) -> None:
    with pytest.raises(RowTroubleError, match=words) as caught:
        read(values)
    assert caught.value.trouble.error_class == error_class


def test_a_budget_below_the_least_output_is_out_of_range() -> None:
    with pytest.raises(RowTroubleError, match="must be from 4 to"):
        read({"n": 3}, min_tokens=4)
