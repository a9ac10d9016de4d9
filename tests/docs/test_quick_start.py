"""The quick start, command by command, as a newcomer types it; the run is killed on the way."""

import os
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jobs.reading import open_job, read_committed
from tests.docs.documents import ROOT, commands
from tests.workers.conditions import wait_for

pytestmark = [pytest.mark.cli, pytest.mark.ray, pytest.mark.timeout(600)]
SCRIPTS = Path(sysconfig.get_path("scripts"))
COMMANDS = [words for words in commands((ROOT / "docs" / "quick-start.md").read_text())]
# The document's job on fewer rows, in shards that can be caught between commits.
SMALLER = ("input.limit=12", "shards.rows=2", "cluster.workers=1", "cluster.batch=2")
NUM_SHARDS = 6
LIMIT_S = 300.0


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory with the repository's examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    yield tmp_path
    shutil.rmtree(tmp_path / "out", ignore_errors=True)


def typed(words: list[str]) -> list[str]:
    """A command of the document, on the smaller job."""
    smaller = [word for setting in SMALLER for word in ("--set", setting)]
    is_job_file = any(word.endswith(".yaml") for word in words)
    return [str(SCRIPTS / words[0]), *words[1:], *(smaller if is_job_file else [])]


def run(words: list[str], *, place: Path) -> str:
    """What a command of the document prints on stdout; it has to succeed."""
    done = subprocess.run(
        typed(words), cwd=place, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def kill_between_commits(words: list[str], *, place: Path) -> None:
    """Type the command, and kill it with all its processes when the first shard is committed."""
    log = place / "driver.log"
    with log.open("wb") as stderr:
        driver = subprocess.Popen(
            typed(words),
            cwd=place,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
    commits = place / "out" / "first" / "commits" / "r0000"
    try:
        wait_for(
            lambda: (commits.is_dir() and any(commits.iterdir())) or driver.poll() is not None,
            what="the first commit",
            limit_s=LIMIT_S,
        )
        assert driver.poll() is None, log.read_text()
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def test_every_command_of_the_quick_start_does_what_the_page_says(place: Path) -> None:
    plan, preview, begin, *others = COMMANDS
    assert "expected" not in run(plan, place=place)
    assert "expected time" in run(preview, place=place)
    assert not (place / "out").exists()

    kill_between_commits(begin, place=place)
    printed = {" ".join(words[1:2]): run(words, place=place) for words in others}
    assert "12 of 12" not in printed["status"]
    assert "first" in printed["list"]

    assert read_committed(open_job(str(place / "out" / "first"))).complete
    assert printed["run"].startswith("state                complete")
    assert printed["inspect"].count("--- ") == 2
    assert "samples              12, 12 ok" in printed["stats"]
    assert printed["retry"].startswith("nothing to retry")
    assert "2 samples decoded again without drafts: 0 differ" in printed["verify"]
    assert pq.read_table(place / "out" / "answers").num_rows == 12
    assert "Complete." in (place / "out" / "report.html").read_text()
