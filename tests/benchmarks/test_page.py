from pathlib import Path

import pytest

from benchmarks.document import DocumentError, read_document
from benchmarks.page import BEGIN, END, PAGE, RESULT, check_page, tables_of, write_page
from benchmarks.report import report
from tests.benchmarks.builders import document, row

MEASURED = document(row("draft_free", 0, [12]))


def test_the_documented_tables_are_those_of_the_result_beside_them() -> None:
    assert tables_of(PAGE.read_text(encoding="utf-8")) == report(read_document(RESULT))


def test_words_around_the_tables_stay(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n")
    write_page(page, MEASURED)
    assert page.read_text() == f"before\n{BEGIN}{report(MEASURED)}{END}after\n"


def test_a_new_page_holds_the_tables_alone(tmp_path: Path) -> None:
    write_page(tmp_path / "page.md", MEASURED)
    assert (tmp_path / "page.md").read_text() == BEGIN + report(MEASURED) + END


@pytest.mark.parametrize("text", ["no markers\n", END + BEGIN, BEGIN, BEGIN + BEGIN + END])
def test_a_page_without_markers_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(DocumentError, match="must hold <!-- tables: begin --> and <!-- tables: en"):
        check_page(tmp_path / "page.md")
