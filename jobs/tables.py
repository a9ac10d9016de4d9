"""Plain tables of figures for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any


def table_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line of column names and one line per row; columns are those of the first row."""
    if not rows:
        return []
    names = list(rows[0])
    cells = [[name.replace("_", " ") for name in names]]
    cells += [[_cell(row[name]) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(f"{c:>{w}}" for c, w in zip(line, widths, strict=True)) for line in cells]


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
