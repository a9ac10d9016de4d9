"""A row's own settings: output budget, temperature and seed."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from jobs.inputs.base import RowTroubleError
from manifests.job_input import Columns

_MAX_TOKENS = 2**31 - 1
_MAX_SEED = 2**63 - 1


class Parameters(NamedTuple):
    """None where the job's own setting holds."""

    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None


def row_parameters(
    values: Mapping[str, Any], columns: Columns, *, min_tokens: int = 0
) -> Parameters:
    """What the row asks for; `RowTroubleError` where it cannot be had."""
    return Parameters(
        max_tokens=_integer(values, columns.max_tokens, low=max(1, min_tokens), high=_MAX_TOKENS),
        temperature=_temperature(values, columns.temperature),
        seed=_integer(values, columns.seed, low=0, high=_MAX_SEED),
    )


def _integer(values: Mapping[str, Any], column: str | None, *, low: int, high: int) -> int | None:
    value = _value(values, column)
    if value is None:
        return None
    number = _number(value, int)
    if number is None or number != int(number):
        raise RowTroubleError("WrongType", f"column `{column}` must be a whole number")
    if not low <= number <= high:
        raise RowTroubleError(
            "OutOfRange", f"column `{column}` is {int(number)}, and must be from {low} to {high}"
        )
    return int(number)


def _temperature(values: Mapping[str, Any], column: str | None) -> float | None:
    value = _value(values, column)
    if value is None:
        return None
    number = _number(value, float)
    if number is None:
        raise RowTroubleError("WrongType", f"column `{column}` must be a number")
    if number < 0.0:
        raise RowTroubleError(
            "OutOfRange", f"column `{column}` is {number}, and must not be below 0"
        )
    return float(number)


def _value(values: Mapping[str, Any], column: str | None) -> Any:
    """The value, or None where there is none: tables without nulls write NaN or empty text."""
    value = None if column is None else values.get(column)
    is_missing = value == "" or (isinstance(value, float) and math.isnan(value))
    return None if is_missing else value


def _number(value: Any, kind: type[int] | type[float]) -> int | float | None:
    """The finite number that a value is or, in a text format, spells."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = kind(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return number if math.isfinite(number) else None
