"""CSV and TSV with a header line, UTF-8; every value is text, and fields may span lines.

A row with too few or too many fields, or with text after a closing quote, is trouble of its own. A
quote that is never closed swallows the rest of the file, so it is an error of the file.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import IO

from jobs.inputs.base import RawRow, Trouble, Values, Wanted
from manifests.errors import InputError

# The module's own limit of 131,072 characters is below what a long prompt needs.
_FIELD_CHARACTERS = 1 << 30
# Bytes that are not UTF-8, as they are decoded below.
_ESCAPED = re.compile("[\udc80-\udcff]")


class _Lines:
    """Lines of a text, and whether somebody has asked for more of them than there are."""

    def __init__(self, text: IO[str]) -> None:
        self._text = text
        self.exhausted = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline()
        if not line:
            self.exhausted = True
            raise StopIteration
        return line


def read_csv(stream: IO[bytes], label: str, wanted: Wanted, *, delimiter: str) -> Iterator[RawRow]:
    """The rows of a file."""
    csv.field_size_limit(_FIELD_CHARACTERS)
    text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
    lines = _Lines(text)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    names = _header(reader, label)
    wanted.check_names(label, names)
    kept = set(wanted.kept(names))
    index = 0
    while not lines.exhausted:
        place = f"{label}, line {reader.line_num + 1}"
        try:
            fields = next(reader, [])
            values = _values(fields, names, kept)
        except csv.Error as error:
            values, fields = _broken(error, place=place, at_end=lines.exhausted), ["broken"]
        if fields:
            yield RawRow(file=label, index=index, place=place, values=values)
            index += 1


def _header(lines: Iterator[list[str]], label: str) -> list[str]:
    try:
        names = next(lines, [])
    except csv.Error as error:
        raise InputError(f"input.uri: {label}: its first line is no header: {error}") from None
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if not names or twice or "" in names:
        problem = f"it names `{twice[0]}` twice" if twice else "a column has no name"
        raise InputError(
            f"input.uri: {label}: its first line must name the columns, and {problem}; write one"
        )
    return names


def _broken(error: csv.Error, *, place: str, at_end: bool) -> Trouble:
    if at_end:
        raise InputError(
            f"input.uri: {place}: a quote that is opened in this row is never closed; close it"
        )
    return Trouble(error_class="InvalidCsv", message=f"the row is not CSV: {error}")


def _values(fields: Sequence[str], names: Sequence[str], kept: set[str]) -> Values:
    if len(fields) != len(names):
        return Trouble(
            error_class="InvalidCsv",
            message=f"the row has {len(fields)} fields, the header {len(names)}",
        )
    values = {name: field for name, field in zip(names, fields, strict=True) if name in kept}
    if any(_ESCAPED.search(field) for field in fields if not field.isascii()):
        return Trouble(error_class="InvalidUtf8", message="the row is not UTF-8 text")
    return dict(values)
