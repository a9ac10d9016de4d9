"""What verification finds, and how damage of any kind becomes a finding and never an exception."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

# All that reading damaged bytes raises; ManifestError and pydantic's errors are ValueErrors.
_DAMAGE = (OSError, ValueError, pa.ArrowException)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong with one stored object."""

    key: str
    problem: str


def attempt(key: str, read: Callable[[], T]) -> tuple[T | None, list[Finding]]:
    """The value and no findings, or no value and the finding why."""
    try:
        return read(), []
    except _DAMAGE as error:
        return None, [_damage(key, error)]


def findings_of(key: str, problems: Iterable[str]) -> list[Finding]:
    """What a check says about a key; whatever it raises about damaged bytes is a finding too."""
    found = []
    try:
        for problem in problems:
            found.append(Finding(key=key, problem=problem))
    except _DAMAGE as error:
        found.append(_damage(key, error))
    return found


def _damage(key: str, error: Exception) -> Finding:
    return Finding(key=key, problem=str(error).removeprefix(f"{key}: ").removeprefix(f"{key} "))


def differences(document: object, expected: dict[str, object]) -> Iterator[str]:
    """One sentence for every field that is not what it has to be."""
    for name, value in expected.items():
        found = getattr(document, name)
        if found != value:
            yield f"{name} is {found!r}, not {value!r}"
