"""The result file: its layout, and what is read from it."""

import json
from pathlib import Path

import pytest

from benchmarks.batching.cells import Policy
from benchmarks.batching.document import (
    ConcurrencyOne,
    EngineDocument,
    EngineRow,
    Slots,
    read_engine_document,
    verdicts,
    write_engine_document,
)
from benchmarks.batching.report import BEGIN, END, RESULT, engine_report, write_engine_page
from benchmarks.document import DocumentError
from benchmarks.page import PAGE, tables_of
from tests.benchmarks.builders import MACHINE


def _row(
    policy: Policy, tokens_per_s: float, *, clock: str = "wall", **values: object
) -> EngineRow:
    given = {
        "clock": clock,
        "rule": "strict",
        "temperature": 0.0,
        "concurrency": 8,
        "policy": policy,
        "tokens_per_s": tokens_per_s,
        "ratio_to_draft_free": tokens_per_s / 100.0,
        "host_share": 0.1,
        "drafter_share": 0.2,
        "positions": 1000,
        "prefix_hit_rate": 0.5,
        "identical": True,
    }
    return EngineRow.model_validate(given | values)


def _document(*rows: EngineRow) -> EngineDocument:
    return EngineDocument(
        machine=MACHINE,
        rows=rows,
        slots=Slots(stream_over_single_shard=0.97),
        concurrency_1=ConcurrencyOne(auto=1.05, bound=1.1),
    )


def test_the_file_has_the_layout_that_readers_know(tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    write_engine_document(_document(_row("draft_free", 100.0), _row("auto", 110.0)), path)
    found = json.loads(path.read_text())
    assert list(found) == ["machine", "rows", "slots", "concurrency_1"]
    assert list(found["rows"][0]) == [
        "clock",
        "rule",
        "temperature",
        "concurrency",
        "policy",
        "tokens_per_s",
        "ratio_to_draft_free",
        "host_share",
        "drafter_share",
        "positions",
        "prefix_hit_rate",
        "identical",
    ]
    assert found["slots"] == {"stream_over_single_shard": 0.97}
    assert found["concurrency_1"] == {"auto": 1.05, "bound": 1.1}
    assert read_engine_document(path).rows[1].policy == "auto"


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    with pytest.raises(DocumentError, match="is missing"):
        read_engine_document(path)
    path.write_text('{"rows": []}')
    with pytest.raises(DocumentError, match="not a result of the engine benchmark"):
        read_engine_document(path)


def test_auto_is_compared_with_the_best_of_its_own_cell_and_clock() -> None:
    rows = (
        _row("draft_free", 100.0),
        _row("d8", 200.0),
        _row("auto", 180.0),
        _row("draft_free", 100.0, concurrency=1),
        _row("auto", 160.0, concurrency=1),
        _row("d8", 999.0, clock="h200-8b"),
    )
    (verdict,) = verdicts(rows)
    assert verdict.clock == "wall"
    assert verdict.worst_over_best == pytest.approx(0.9)
    assert verdict.mean_over_best == pytest.approx(0.9**0.5)
    assert verdict.worst_over_draft_free == pytest.approx(1.6)


def test_tables_show_every_policy_and_mark_what_differs(tmp_path: Path) -> None:
    rows = [_row("draft_free", 100.0), _row("d8", 80.0), _row("d20", 60.0)]
    rows += [_row("gamma", 90.0, identical=False), _row("auto", 104.0)]
    page = tmp_path / "page.md"
    write_engine_page(page, _document(*rows))
    line = "| strict | 0 | 8 | 100 | 10% | 0.80 | 0.60 | 0.90 ! | 1.04 |"
    assert line in page.read_text().splitlines()


def test_the_documented_tables_are_those_of_the_result_beside_them() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert tables_of(text, begin=BEGIN, end=END) == engine_report(read_engine_document(RESULT))
