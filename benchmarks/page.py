"""The page that shows the tables: they stand between two markers, the words around them are ours.

``python -m benchmarks.page`` renews the tables of ``docs/benchmarks.md`` from the result beside it.
"""

from pathlib import Path

from benchmarks.document import Document, DocumentError, read_document
from benchmarks.report import report

BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"
DOCS = Path(__file__).parents[1] / "docs"
RESULT, PAGE = DOCS / "benchmarks.json", DOCS / "benchmarks.md"


def tables_of(text: str) -> str:
    """What stands between the markers; ``DocumentError`` if they are not there."""
    parts = text.split(BEGIN)
    if len(parts) != 2 or parts[1].count(END) != 1:
        raise DocumentError(f"the page must hold {BEGIN.strip()} and {END.strip()} once each")
    return parts[1].partition(END)[0]


def check_page(path: Path | None) -> None:
    """Raises DocumentError if an existing page could not take the tables."""
    if path is not None and path.is_file():
        tables_of(path.read_text(encoding="utf-8"))


def write_page(path: Path | None, document: Document) -> None:
    """Renew the tables of a page, or make a page of nothing else; nothing without a path."""
    if path is None:
        return
    text = path.read_text(encoding="utf-8") if path.is_file() else BEGIN + END
    old = BEGIN + tables_of(text) + END
    path.write_text(text.replace(old, BEGIN + report(document) + END), encoding="utf-8")


if __name__ == "__main__":
    write_page(PAGE, read_document(RESULT))
