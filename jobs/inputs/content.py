"""What the target will read: the prompt or messages of a row, checked."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from jobs.inputs.base import RowTroubleError
from jobs.inputs.carrying import finite_form, plain_form

Message = dict[str, Any]


class Content(NamedTuple):
    """One of the two: text, or messages as JSON."""

    prompt: str | None = None
    messages: str | None = None


def text_content(text: str, *, name: str, system: str | None) -> Content:
    """A prompt text, behind the job's system message if there is one."""
    if not text:
        raise RowTroubleError("EmptyPrompt", f"{name} is empty")
    encodable(text, name=name)
    if system is None:
        return Content(prompt=text)
    return Content(messages=_json([_system(system), {"role": "user", "content": text}]))


def message_content(value: Any, *, name: str, system: str | None) -> Content:
    """Chat messages, as a list or as its JSON text."""
    messages = [_message(item, index=i, name=name) for i, item in enumerate(_list(value, name))]
    if not messages:
        raise RowTroubleError("EmptyPrompt", f"{name} holds no message")
    if system is not None and messages[0]["role"] != "system":
        messages.insert(0, _system(system))
    return Content(messages=encodable(_json(messages), name=name))


def column_value(values: Mapping[str, Any], column: str) -> Any:
    """The value that makes the prompt; `RowTroubleError` where there is none."""
    if column not in values:
        present = ", ".join(map(str, list(values)[:8])) or "none"
        raise RowTroubleError(
            "MissingPrompt", f"the row has no column `{column}`; it has {present}"
        )
    value = values[column]
    if value is None:
        raise RowTroubleError("NullPrompt", f"column `{column}` is null")
    return value


def column_text(values: Mapping[str, Any], column: str) -> str:
    """The prompt text of a column."""
    value = column_value(values, column)
    if not isinstance(value, str):
        raise RowTroubleError("WrongType", f"column `{column}` must be text, not {_kind(value)}")
    return value


def encodable(text: str, *, name: str) -> str:
    """`text`, if UTF-8 can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RowTroubleError(
            "LoneSurrogate",
            f"{name} has a lone surrogate at character {error.start}, which no UTF-8 text can hold",
        ) from None
    return text


def _system(text: str) -> Message:
    return {"role": "system", "content": text}


def _json(messages: list[Message]) -> str:
    return json.dumps(messages, ensure_ascii=False, default=plain_form)


def _list(value: Any, name: str) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise RowTroubleError(
                "WrongType", f"{name} must be a list of messages, or its JSON text"
            ) from None
    if not isinstance(value, list):
        raise RowTroubleError("WrongType", f"{name} must be a list, not {_kind(value)}")
    return value


def _message(item: Any, *, index: int, name: str) -> Message:
    if not isinstance(item, dict):
        raise RowTroubleError("WrongType", f"message {index} of {name} must be an object")
    for key in ("role", "content"):
        if not isinstance(item.get(key), str):
            raise RowTroubleError("WrongType", f"message {index} of {name} needs a text `{key}`")
    # A struct column gives every message all members; null means that it has not got this one.
    return {key: finite_form(value) for key, value in item.items() if value is not None}


def _kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object" if isinstance(value, dict) else type(value).__name__)
