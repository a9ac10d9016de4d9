"""The page that shows the tables: they stand between two markers, the words around them are ours.

``python -m benchmarks.page`` renews the tables of ``docs/benchmarks.md`` from the result beside it.
"""

from pathlib import Path

from benchmarks.document import Document, DocumentError, read_document
from benchmarks.report import report

BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"
DOCS = Path(__file__).parents[1] / "docs"
RESULT, PAGE = DOCS / "benchmarks.json", DOCS / "benchmarks.md"


def tables_of(text: str, *, begin: str = BEGIN, end: str = END) -> str:
    """What stands between the markers; ``DocumentError`` if they are not there."""
    parts = text.split(begin)
    if len(parts) != 2 or parts[1].count(end) != 1:
        raise DocumentError(f"the page must hold {begin.strip()} and {end.strip()} once each")
    return parts[1].partition(end)[0]


def check_page(path: Path | None, *, begin: str = BEGIN, end: str = END) -> None:
    """Raises DocumentError if an existing page could not take the tables."""
    if path is not None and path.is_file():
        tables_of(path.read_text(encoding="utf-8"), begin=begin, end=end)


def write_page(path: Path | None, document: Document) -> None:
    """Renew the tables of a page, or make a page of nothing else; nothing without a path."""
    replace_tables(path, report(document), begin=BEGIN, end=END)


def replace_tables(path: Path | None, tables: str, *, begin: str, end: str) -> None:
    """Put tables between a page's markers, or make a page of them; nothing without a path."""
    if path is None:
        return
    text = path.read_text(encoding="utf-8") if path.is_file() else begin + end
    old = begin + tables_of(text, begin=begin, end=end) + end
    path.write_text(text.replace(old, begin + tables + end), encoding="utf-8")


if __name__ == "__main__":
    write_page(PAGE, read_document(RESULT))
