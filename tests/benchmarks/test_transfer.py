"""The transfer table: every trained model against every family, and what the docs show of it."""

import json
from dataclasses import replace

import pytest

from benchmarks.page import DOCS
from benchmarks.transfer import Cell, lines


def _cells() -> list[Cell]:
    return [Cell(**cell) for cell in json.loads((DOCS / "transfer.json").read_text())]


def test_rows_are_what_a_model_was_trained_on_and_columns_what_it_is_tested_on() -> None:
    cells = [
        Cell(
            trained_on=trained,
            tested_on=tested,
            samples=2,
            nfe=nfe,
            transitions=4 * nfe,
            reduction=4.0,
            identical=True,
        )
        for trained, tested, nfe in (("a", "a", 1.0), ("b", "a", 2.0), ("a", "b", 3.0))
    ]
    with pytest.raises(KeyError):  # a cell is missing: nothing is left blank in silence
        lines(cells)
    cells.append(replace(cells[0], trained_on="b", tested_on="b"))
    assert lines(cells) == [
        "| trained on | a | b |",
        "|---|---|---|",
        "| a | 1.0 (4.00x) | 3.0 (4.00x) |",
        "| b | 2.0 (4.00x) | 1.0 (4.00x) |",
    ]


def test_the_page_shows_the_measured_table() -> None:
    page = (DOCS / "benchmarks.md").read_text()
    assert "\n".join(lines(_cells())) in page


def test_every_measured_cell_is_identical_to_draft_free_decoding() -> None:
    assert all(cell.identical for cell in _cells())
