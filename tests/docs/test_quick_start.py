"""The quick start, command by command, as a newcomer types it; the run is killed on the way.

The pages about failures and figures go on with its job.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jobs.reading import open_job, read_committed
from tests.docs.documents import blocks, page, run_commands
from tests.docs.terminal import LIMIT_S, Terminal
from tests.workers.conditions import wait_for

pytestmark = [pytest.mark.cli, pytest.mark.ray, pytest.mark.timeout(600)]
# The documents' job on fewer rows, in shards that can be caught between commits; some of its
# answers do not fit.
SMALLER = (
    *("input.limit=12", "shards.rows=1", "cluster.workers=1", "cluster.batch=2"),
    "decode.max_tokens=70",
)
Printed = dict[str, str]


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory, cluster_address: str) -> Iterator[Terminal]:
    """Where everything is typed; the pages' runs share a cluster, the README's has its own."""
    place = Path(tmp_path_factory.mktemp("newcomer"))
    yield Terminal(place=place, smaller=(*SMALLER, f"cluster.address={cluster_address}"))
    shutil.rmtree(place / "out", ignore_errors=True)


def kill_between_commits(
    terminal: Terminal, command: Sequence[str], *, looking: Sequence[Sequence[str]]
) -> Printed:
    """Type the command, look while it runs, and kill it with all its processes.

    It is killed when the first shard is committed.
    """
    place = terminal.place
    log = place / "driver.log"
    with log.open("wb") as stderr:
        driver = subprocess.Popen(
            terminal.words(command),
            cwd=place,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
    job = place / "out" / "first"
    try:
        _wait_for_a_file_in(job / "presence", driver)
        printed = {words[1]: terminal.run(words) for words in looking}
        _wait_for_a_file_in(job / "commits" / "r0000", driver)
        assert driver.poll() is None, log.read_text()
        return printed
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def _wait_for_a_file_in(folder: Path, driver: "subprocess.Popen[bytes]") -> None:
    """Until there is one; not for a driver that has ended."""
    wait_for(
        lambda: (folder.is_dir() and any(folder.iterdir())) or driver.poll() is not None,
        what=f"a file in {folder}",
        limit_s=LIMIT_S,
    )


@pytest.fixture(scope="module")
def finished(terminal: Terminal) -> Printed:
    """The quick start was typed; what its commands printed, by verb."""
    plan, preview, begin, status, listing, *others = run_commands("quick-start.md")
    printed = {"plan": terminal.run(plan), "preview": terminal.run(preview)}
    assert not (terminal.place / "out").exists()
    printed |= kill_between_commits(terminal, begin, looking=(status, listing))
    return printed | {words[1]: terminal.run(words) for words in others}


def test_every_command_of_the_quick_start_does_what_the_page_says(
    terminal: Terminal, finished: Printed
) -> None:
    assert "expected" not in finished["plan"]
    assert "expected time" in finished["preview"]
    assert "state            running" in finished["status"]
    assert "12 of 12" not in finished["status"]
    assert "running" in finished["list"]

    place = terminal.place
    assert read_committed(open_job(str(place / "out" / "first"))).complete
    assert finished["run"].startswith("state                complete")
    assert finished["inspect"].count("--- ") == 2
    assert "samples              12, 12 ok" in finished["stats"]
    assert finished["retry"].startswith("nothing to retry")
    assert "2 samples decoded again without drafts: 0 differ" in finished["verify"]
    assert pq.read_table(place / "out" / "answers").num_rows == 12
    assert "Complete." in (place / "out" / "report.html").read_text()


@pytest.mark.usefixtures("finished")
def test_the_python_of_the_quick_start_works(terminal: Terminal) -> None:
    (block,) = [b for b in blocks(page("quick-start.md")) if b.language == "python"]
    asked = f"{block.text}\nprint(table.num_rows, table.column_names)"
    assert terminal.run(["python", "-c", asked]) == "12 ['id', 'text', 'nfe']\n"


@pytest.mark.usefixtures("finished")
def test_the_page_about_statistics_goes_on_with_that_job(terminal: Terminal) -> None:
    table, figures, report = run_commands("statistics.md")
    assert "tokens per second" in terminal.run(table)
    assert json.loads(terminal.run(figures))["finish_reasons"]["length"] > 0
    terminal.run(report)


@pytest.mark.usefixtures("finished")
def test_the_page_about_failures_goes_on_with_that_job(terminal: Terminal) -> None:
    errors, cut, missing, logs, stats, nothing, again = run_commands("rerun-failures.md")
    assert terminal.run(errors) == ""
    assert "length, 70 tokens" in terminal.run(cut)
    assert terminal.run(missing).strip() == ""
    terminal.run(logs)
    assert "samples              12, 12 ok" in terminal.run(stats)
    assert terminal.run(nothing).startswith("nothing to retry")
    assert "accuracy             all 1.000" in terminal.run(again)
    assert terminal.run(cut) == ""
