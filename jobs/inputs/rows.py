"""What a row must hold, whatever file it came from: raw rows in, staged rows out.

A row in trouble becomes a staged row with `error_class` and `error_message`; it is never decoded
and ends as an error row of the output. Classes: `InvalidJson`, `InvalidUtf8`, `MissingPrompt`,
`NullPrompt`, `EmptyPrompt`, `WrongType`, `LoneSurrogate`, `MissingId`, `DuplicateId`.
Duplicates are found by 128-bit digests of the ids: about 150 bytes of memory per row.
"""

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from jobs.inputs.base import RawRow, Trouble
from manifests.job import Columns
from manifests.staged import StagedRow


class RowTroubleError(Exception):
    """Carries a `Trouble` out of the checks of one row."""

    def __init__(self, error_class: str, message: str) -> None:
        super().__init__(message)
        self.trouble = Trouble(error_class=error_class, message=message)


def stage_rows(raw_rows: Iterable[RawRow], *, columns: Columns, name: str) -> Iterator[StagedRow]:
    """The staged form of `raw_rows`, numbered from 0; `name` (the file's) makes missing ids."""
    seen: dict[bytes, int] = {}
    name = _storable(name)
    for row, raw in enumerate(raw_rows):
        yield _stage(raw, row=row, columns=columns, name=name, seen=seen)


def _stage(
    raw: RawRow, *, row: int, columns: Columns, name: str, seen: dict[bytes, int]
) -> StagedRow:
    made_id = f"{name}:{row}"
    values = raw.values
    if isinstance(values, Trouble):
        return _staged(row=row, row_id=made_id, place=raw.place, trouble=values)
    carried = _carried(values, columns)
    row_id = made_id
    try:
        row_id = _row_id(values, columns, made_id=made_id)
        _refuse_duplicate(row_id, row=row, columns=columns, seen=seen)
        prompt, messages = _prompt(values, columns)
    except RowTroubleError as error:
        return _staged(
            row=row, row_id=row_id, place=raw.place, trouble=error.trouble, carried=carried
        )
    return _staged(row=row, row_id=row_id, prompt=prompt, messages=messages, carried=carried)


def _staged(
    *,
    row: int,
    row_id: str,
    place: str = "",
    prompt: str | None = None,
    messages: str | None = None,
    trouble: Trouble | None = None,
    carried: str | None = None,
) -> StagedRow:
    return StagedRow(
        row=row,
        id=row_id,
        prompt=prompt,
        messages=messages,
        error_class=trouble.error_class if trouble else None,
        error_message=_storable(f"{place}: {trouble.message}") if trouble else None,
        carried=carried,
        max_tokens=None,
        temperature=None,
        seed=None,
    )


def _storable(text: str) -> str:
    """`text` for UTF-8 storage, whatever it quotes."""
    return text.encode("utf-8", "replace").decode()


def _row_id(values: dict[str, Any], columns: Columns, *, made_id: str) -> str:
    if columns.id is None:
        return made_id
    value = values.get(columns.id)
    if value is None or value == "":
        raise RowTroubleError("MissingId", f"column `{columns.id}` holds no id; give the row one")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RowTroubleError("WrongType", f"column `{columns.id}` must be text or a whole number")
    return _encodable(str(value), column=columns.id)


def _refuse_duplicate(row_id: str, *, row: int, columns: Columns, seen: dict[bytes, int]) -> None:
    if columns.id is None:
        return
    digest = hashlib.blake2b(row_id.encode(), digest_size=16).digest()
    first = seen.setdefault(digest, row)
    if first != row:
        raise RowTroubleError(
            "DuplicateId", f"id `{row_id}` belongs to row {first} (counted from 0)"
        )


def _prompt(values: dict[str, Any], columns: Columns) -> tuple[str | None, str | None]:
    column = columns.messages or columns.prompt
    assert column is not None
    if column not in values:
        present = ", ".join(list(values)[:8]) or "none"
        raise RowTroubleError(
            "MissingPrompt", f"the row has no column `{column}`; it has {present}"
        )
    value = values[column]
    if value is None:
        raise RowTroubleError("NullPrompt", f"column `{column}` is null")
    if columns.messages:
        return None, _messages(value, column=column)
    if not isinstance(value, str):
        raise RowTroubleError("WrongType", f"column `{column}` must be text, not {_kind(value)}")
    if not value:
        raise RowTroubleError("EmptyPrompt", f"column `{column}` is empty")
    return _encodable(value, column=column), None


def _messages(value: Any, *, column: str) -> str:
    if not isinstance(value, list):
        raise RowTroubleError("WrongType", f"column `{column}` must be a list, not {_kind(value)}")
    if not value:
        raise RowTroubleError("EmptyPrompt", f"column `{column}` holds no message")
    messages = [_message(item, index=i, column=column) for i, item in enumerate(value)]
    return _encodable(json.dumps(messages, ensure_ascii=False, default=_plain), column=column)


def _message(item: Any, *, index: int, column: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise RowTroubleError(
            "WrongType", f"message {index} of column `{column}` must be an object"
        )
    for key in ("role", "content"):
        if not isinstance(item.get(key), str):
            raise RowTroubleError(
                "WrongType", f"message {index} of column `{column}` needs a text `{key}`"
            )
    # A struct column gives every message all members; null means that it has not got this one.
    return {key: _finite(value) for key, value in item.items() if value is not None}


def _encodable(text: str, *, column: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RowTroubleError(
            "LoneSurrogate",
            f"column `{column}` has a lone surrogate at character {error.start}, which no UTF-8 "
            "text can hold",
        ) from None
    return text


def _carried(values: dict[str, Any], columns: Columns) -> str | None:
    used = {columns.id, columns.messages or columns.prompt}
    rest = {key: _finite(value) for key, value in values.items() if key not in used}
    if not rest:
        return None
    text = json.dumps(rest, ensure_ascii=False, default=_plain)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(rest, ensure_ascii=True, default=_plain)
    return text


def _finite(value: Any) -> Any:
    """`value` with null in place of the numbers that JSON has not got."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    return value


def _plain(value: Any) -> Any:
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


def _kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object" if isinstance(value, dict) else type(value).__name__)
