"""The input columns that go into the output, as one JSON object."""

import base64
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any


def carried_json(values: Mapping[str, Any]) -> str | None:
    """A row's carried columns; None where there are none."""
    if not values:
        return None
    finite = {str(key): finite_form(value) for key, value in values.items()}
    text = json.dumps(finite, ensure_ascii=False, default=plain_form)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate can be stored escaped only
        return json.dumps(finite, ensure_ascii=True, default=plain_form)
    return text


def finite_form(value: Any) -> Any:
    """`value` with null in place of the numbers that JSON has not got."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [finite_form(item) for item in value]
    if isinstance(value, dict):
        return {str(key): finite_form(item) for key, item in value.items()}
    return value


def plain_form(value: Any) -> Any:
    """A JSON form of what only Parquet can hold."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal | timedelta):
        return str(value)
    if isinstance(value, tuple):  # a map's entry
        return list(value)
    return str(value)
