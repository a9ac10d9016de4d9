"""The page about training a drafter, command by command, on a few rows and steps."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.documents import run_commands
from tests.docs.terminal import Terminal

pytestmark = [pytest.mark.cli, pytest.mark.ray, pytest.mark.timeout(600)]
# Of the page's 760 rows and 4,000 steps; what is trained is no good, and every file is there.
SMALLER = ("input.limit=20", "cluster.workers=1", "decode.max_tokens=40")
FEWER = ("--steps", "20", "--batch", "16")


@pytest.fixture
def terminal(tmp_path: Path, cluster_address: str) -> Iterator[Terminal]:
    """Where everything is typed."""
    yield Terminal(place=tmp_path, smaller=(*SMALLER, f"cluster.address={cluster_address}"))
    shutil.rmtree(tmp_path / "out", ignore_errors=True)


def test_a_drafter_is_made_as_the_page_says(terminal: Terminal) -> None:
    prompts, collect, train, evaluate, calibrate, diagnose = run_commands("train-a-drafter.md")
    terminal.run(prompts)
    terminal.run(collect)
    heads = ["depth", "examples", "order", "model", "stale", "confidence"]
    trained = terminal.run([*train, *FEWER])
    assert trained.splitlines()[0].split() == heads
    assert terminal.run(evaluate) == trained
    assert terminal.run(calibrate).split()[0] == "constants"
    drafter = terminal.place / "out" / "drafter"
    assert json.loads((drafter / "drafter.json").read_text())["kind"] == "order"
    assert "forwards per sample" in terminal.run([*diagnose, "--samples", "2"])
