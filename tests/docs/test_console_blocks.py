"""What the documents tell a reader to type is typed by a test, or says why it is not."""

from pathlib import Path

import pytest

from tests.docs.documents import CONSOLE, DOCUMENTS, ROOT, Block, blocks, run_commands
from tests.docs.executed import RUN_BY, executed_commands
from tests.docs.test_documents import name

EXECUTED = executed_commands()


def console_blocks(path: Path) -> list[Block]:
    return [block for block in blocks(path.read_text()) if block.language in CONSOLE]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_a_console_block_is_run_or_says_why_not(path: Path) -> None:
    for block in console_blocks(path):
        if block.reason is None:
            assert block.language == "bash", f"nobody can run this block: {block.text}"
            assert {tuple(words) for words in block.commands()} <= EXECUTED


@pytest.mark.parametrize("page", RUN_BY)
def test_the_test_of_a_page_takes_its_commands(page: str) -> None:
    source = (ROOT / "tests" / "docs" / RUN_BY[page]).read_text()
    assert f'run_commands("{page}")' in source
    assert run_commands(page)


def test_tests_that_a_reason_names_exist() -> None:
    reasons = [b.reason or "" for path in DOCUMENTS for b in console_blocks(path)]
    words = {word.strip(";,.") for reason in reasons for word in reason.split()}
    named = sorted(word for word in words if word.startswith("tests/"))
    assert named
    assert [word for word in named if not (ROOT / word).exists()] == []


def test_a_reason_belongs_to_the_block_right_behind_it() -> None:
    text = (
        "<!-- not run: minutes -->\n```bash\nmake demo\n```\n\n"
        "```bash\nspotbatch run \\\n  a.yaml # why\n```\n```text\nx\n```\n"
    )
    first, second, third = blocks(text)
    assert (first.reason, second.reason, third.language) == ("minutes", None, "text")
    assert list(second.commands()) == [["spotbatch", "run", "a.yaml"]]
