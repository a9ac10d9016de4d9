"""JSONL: one JSON object a line, UTF-8; blank lines are skipped."""

import io
import json
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from jobs.inputs.base import RawRow, Trouble, Values

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BUFFER_BYTES = 1 << 20


def read_jsonl(stream: IO[bytes], label: str) -> Iterator[RawRow]:
    """The rows of a file; a line that is not a JSON object is trouble of its own row."""
    index = 0
    for number, line in enumerate(io.BufferedReader(stream, _BUFFER_BYTES), start=1):  # type: ignore[type-var]
        line = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        if line.strip():
            yield RawRow(
                file=label, index=index, place=f"{label}, line {number}", values=_parse(line)
            )
            index += 1


def _parse(line: bytes) -> Values:
    try:
        value: Any = json.loads(line.decode("utf-8"), parse_constant=_refuse)
    except UnicodeDecodeError:
        return Trouble(error_class="InvalidUtf8", message="the line is not UTF-8 text")
    except (ValueError, RecursionError) as error:
        return Trouble(error_class="InvalidJson", message=f"the line is not JSON: {error}")
    if not isinstance(value, dict):
        return Trouble(error_class="InvalidJson", message="the line is not a JSON object")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
