"""JSONL: one JSON object a line, UTF-8; blank lines are skipped."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from jobs.inputs.base import RawRow, Trouble

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_jsonl(path: Path) -> Iterator[RawRow]:
    """The rows of `path`; a line that is not a JSON object is trouble of its own row."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            line = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            if line.strip():
                yield RawRow(place=f"line {number}", values=_parse(line))


def _parse(line: bytes) -> dict[str, Any] | Trouble:
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse)
    except UnicodeDecodeError:
        return Trouble(error_class="InvalidUtf8", message="the line is not UTF-8 text")
    except (ValueError, RecursionError) as error:
        return Trouble(error_class="InvalidJson", message=f"the line is not JSON: {error}")
    if not isinstance(value, dict):
        return Trouble(error_class="InvalidJson", message="the line is not a JSON object")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
