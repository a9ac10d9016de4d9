"""Reads the project's Markdown files: commands of their ``bash`` blocks, and links."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
)
BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command, the directory of an executable left out."""
    for block in BLOCK.findall(text):
        for line in block.splitlines():
            if words := shlex.split(line, comments=True):
                yield [words[0].removeprefix(".venv/bin/"), *words[1:]]


def all_commands() -> list[list[str]]:
    """Every different command in any document."""
    found = (command for path in DOCUMENTS for command in commands(path.read_text()))
    return [list(words) for words in sorted({tuple(command) for command in found})]


def links(text: str) -> list[str]:
    """Targets of links into the repository."""
    return LINK.findall(text)
