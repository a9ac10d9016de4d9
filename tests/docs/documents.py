"""Reads the project's Markdown files: fenced blocks, the commands in them, and links.

A console block is run by a test, or stands behind ``<!-- not run: REASON -->``. A ``bash`` block
has commands of this repository, a ``shell`` block also those of other programs.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
)
CONSOLE = frozenset({"bash", "shell", "sh", "console"})
FENCE = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^>]+) -->\n+)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block."""

    language: str
    text: str
    reason: str | None
    """Why no test runs it, if none does."""

    def commands(self) -> Iterator[list[str]]:
        """The words of each command, the directory of an executable left out."""
        for line in self.text.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield [words[0].removeprefix(".venv/bin/"), *words[1:]]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a document, in order."""
    return [
        Block(language=found["language"], text=found["text"], reason=found["reason"])
        for found in FENCE.finditer(text)
    ]


def commands(text: str, *, languages: frozenset[str] = frozenset({"bash"})) -> list[list[str]]:
    """The commands of a document's blocks, in order."""
    return [
        words for block in blocks(text) if block.language in languages for words in block.commands()
    ]


def all_commands(languages: frozenset[str] = frozenset({"bash"})) -> list[list[str]]:
    """Every different command in any document."""
    found = {
        tuple(words)
        for path in DOCUMENTS
        for words in commands(path.read_text(), languages=languages)
    }
    return [list(words) for words in sorted(found)]


def page(name: str) -> str:
    """The text of a page in `docs/`."""
    return (ROOT / "docs" / name).read_text()


def run_commands(name: str) -> list[list[str]]:
    """The commands of a page in `docs/` that a test has to run."""
    return [
        words
        for block in blocks(page(name))
        if block.language == "bash" and block.reason is None
        for words in block.commands()
    ]


def links(text: str) -> list[str]:
    """Targets of links into the repository."""
    return LINK.findall(text)
