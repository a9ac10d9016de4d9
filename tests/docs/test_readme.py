"""The commands of the README that concern a reader's own job."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.documents import run_commands
from tests.docs.terminal import Terminal

pytestmark = [pytest.mark.cli, pytest.mark.ray, pytest.mark.timeout(600)]
SMALLER = ("input.limit=4", "shards.rows=2", "cluster.workers=1", "decode.max_tokens=24")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Where everything is typed."""
    yield Terminal(place=tmp_path, smaller=SMALLER)
    shutil.rmtree(tmp_path / "out", ignore_errors=True)


def test_a_job_goes_from_its_file_to_its_output_files(terminal: Terminal) -> None:
    validate, plan, run, status, stats, verify, files, *drafting = run_commands("../README.md")
    assert drafting == run_commands("train-a-drafter.md")[1:]  # typed by that page's test
    assert "is valid: 4 rows in 2 shards" in terminal.run(validate)
    assert "nothing was written" in terminal.run(plan)
    assert "state                complete" in terminal.run(run)
    assert "state            complete" in terminal.run(status)
    assert json.loads(terminal.run(stats))["ok"] == 4
    assert "4 samples decoded again without drafts: 0 differ" in terminal.run(verify)
    assert len(terminal.run(files).splitlines()) == 2
