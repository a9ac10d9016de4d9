"""Which test types the commands of which page."""

from tests.docs.documents import run_commands

RUN_BY = {
    "../README.md": "test_readme.py",
    "quick-start.md": "test_quick_start.py",
    "rerun-failures.md": "test_quick_start.py",
    "statistics.md": "test_quick_start.py",
    "tutorial.md": "test_tutorial.py",
    "own-target.md": "test_own_target_page.py",
    "train-a-drafter.md": "test_drafter_page.py",
    "s3.md": "test_s3_page.py",
}


def executed_commands() -> set[tuple[str, ...]]:
    """Every command that one of these tests types."""
    return {tuple(words) for name in RUN_BY for words in run_commands(name)}
