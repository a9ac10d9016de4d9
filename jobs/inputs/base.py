"""What a reader gives, whatever the file's format.

A reader streams `RawRow`s in file order in bounded memory. What concerns the whole file (missing,
empty, unreadable, no such column) is an `InputError`; what concerns one row is a `Trouble` in its
place, so that the job goes on without it.
"""

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from manifests.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why one row cannot be used: a class to count by and a sentence to read."""

    error_class: str
    message: str


class RowTroubleError(Exception):
    """Carries a `Trouble` out of the checks of one row."""

    def __init__(self, error_class: str, message: str) -> None:
        super().__init__(message)
        self.trouble = Trouble(error_class=error_class, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRow:
    """One row as it stands in a file."""

    file: str
    """The file's label: what made ids begin with."""
    index: int
    """Number of the row in its file, from 0."""
    place: str
    """Where the row stands, for messages."""
    values: "Values"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The columns that a job asks for."""

    required: tuple[tuple[str, str], ...] = ()
    """Settings with the columns that they name, which have to be there."""
    text: str | None = None
    """The one of these settings whose column must hold text in a typed file."""
    only: frozenset[str] | None = None
    """All columns that are of any use; None for every column."""

    def check_names(self, file: str, names: Collection[str]) -> None:
        """Raise `InputError` unless a file with these column names has what is required."""
        for setting, column in self.required:
            if column not in names:
                raise InputError(
                    f"{setting}: {file} has no column `{column}`; {nearest(column, names)}"
                )

    def kept(self, names: Iterable[str]) -> list[str]:
        """Those of a file's columns that are of use, in order."""
        return [name for name in names if self.only is None or name in self.only]


def nearest(column: str, names: Collection[str]) -> str:
    """What to say about a column that is not among `names`."""
    listed = [str(name) for name in names]
    near = difflib.get_close_matches(column, listed, n=1)
    if near:
        return f"did you mean `{near[0]}`? it has {', '.join(listed[:20])}"
    return f"it has {', '.join(listed[:20]) or 'none'}"


Values = dict[str, Any] | Trouble
