"""What a reader gives, whatever the file's format; and how a reader is chosen.

A reader streams `RawRow`s in file order in bounded memory. What concerns the whole file (missing,
empty, unreadable, no such column) is an `InputError`; what concerns one row is a `Trouble` in its
place, so that the job goes on without it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manifests.errors import InputError
from manifests.job import Columns

SUFFIXES = (".jsonl", ".ndjson", ".parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why one row cannot be used: a class to count by and a sentence to read."""

    error_class: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRow:
    """One row as it stands in the file: `place` says where, for messages."""

    place: str
    values: dict[str, Any] | Trouble


def input_path(uri: str) -> Path:
    """The input file, checked to be one that can be read; raises `InputError`."""
    path = Path(uri)
    if "://" in uri:
        raise InputError(f"input.uri {uri}: this version reads local files only; copy it here")
    if not path.exists():
        raise InputError(f"input.uri {uri}: there is no such file")
    if not path.is_file():
        raise InputError(f"input.uri {uri}: this is not a file; name one JSONL or Parquet file")
    if path.suffix not in SUFFIXES:
        raise InputError(f"input.uri {uri}: the name must end in one of {', '.join(SUFFIXES)}")
    if path.stat().st_size == 0:
        raise InputError(f"input.uri {uri}: the file is empty; it needs at least one row")
    return path


def read_input(path: Path, columns: Columns) -> Iterator[RawRow]:
    """The rows of `path` in order."""
    if path.suffix == ".parquet":
        from jobs.inputs.parquet import read_parquet

        return read_parquet(path, columns)
    from jobs.inputs.jsonl import read_jsonl

    return read_jsonl(path)
