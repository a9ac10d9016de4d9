"""The tutorial, command by command; on 8 of its 500 rows, so 32 of its 2,000 samples."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from jobs.reading import open_job, read_committed
from tests.docs.documents import ROOT, blocks, page, run_commands
from tests.docs.terminal import LIMIT_S, Terminal
from tests.workers.conditions import wait_for

pytestmark = [pytest.mark.cli, pytest.mark.ray, pytest.mark.timeout(600)]
SMALLER = ("input.limit=8", "shards.rows=1", "cluster.workers=1")
NUM_SAMPLES = 32
JOB = Path("out/tutorial/job")
DRAINED = 3


@pytest.fixture
def terminal(tmp_path: Path, cluster_address: str) -> Terminal:
    """Where everything is typed; its runs share a cluster."""
    return Terminal(place=tmp_path, smaller=(*SMALLER, f"cluster.address={cluster_address}"))


@pytest.fixture
def driver(terminal: Terminal) -> Iterator["subprocess.Popen[str]"]:
    """The run of the page, begun and not waited for."""
    (begin,) = [words for words in run_commands("tutorial.md") if words[1:] == RUN]
    process = subprocess.Popen(
        terminal.words(begin),
        cwd=terminal.place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


RUN = ["run", "examples/tutorial/job.yaml"]


def drain_after_a_commit(terminal: Terminal, driver: "subprocess.Popen[str]") -> None:
    """Ctrl-C once something is committed."""
    commits = terminal.place / JOB / "commits" / "r0000"
    wait_for(
        lambda: (commits.is_dir() and any(commits.iterdir())) or driver.poll() is not None,
        what="the first commit",
        limit_s=LIMIT_S,
    )
    driver.send_signal(signal.SIGINT)
    printed, _ = driver.communicate(timeout=LIMIT_S)
    assert driver.returncode == DRAINED, printed


def test_the_tutorial_does_what_it_says(terminal: Terminal, request: pytest.FixtureRequest) -> None:
    prompts, plan, preview, _, status, go_on, inspect, retry, stats, verify, export, report = (
        run_commands("tutorial.md")
    )
    terminal.run(prompts)
    assert f"{NUM_SAMPLES} to decode" in terminal.run(plan)
    assert "expected time" in terminal.run(preview)
    drain_after_a_commit(terminal, request.getfixturevalue("driver"))
    assert "state            stopped" in terminal.run(status)

    finished = terminal.run(go_on)
    assert finished.startswith("state                complete")
    job = open_job(str(terminal.place / JOB))
    before = sum(record.errors for record in read_committed(job).records.values())
    assert before > 0
    assert terminal.run(inspect).count("Filtered") == 2
    terminal.run(retry)
    assert sum(record.errors for record in read_committed(job).records.values()) < before
    assert f"samples              {NUM_SAMPLES}, " in terminal.run(stats)
    assert "no finding; 4 samples decoded again without drafts: 0 differ" in terminal.run(verify)
    terminal.run(export)
    assert "different answers to" in terminal.run(["python", "-c", loading()])
    terminal.run(report)
    assert (terminal.place / "out" / "tutorial" / "report.html").is_file()


def loading() -> str:
    """The page's Python."""
    (block,) = [block for block in blocks(page("tutorial.md")) if block.language == "python"]
    return block.text


def test_what_the_page_shows_of_the_job_file_is_in_it() -> None:
    (block,) = [block for block in blocks(page("tutorial.md")) if block.language == "yaml"]
    whole = yaml.safe_load((ROOT / "examples" / "tutorial" / "job.yaml").read_text())
    for group, settings in yaml.safe_load(block.text).items():
        assert settings.items() <= whole[group].items()
