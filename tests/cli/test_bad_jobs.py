"""Each bad job file and each bad input is one clear sentence, and leaves nothing behind."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.cli.bad_jobs import INPUTS, JOB_FILES, ROWS, Bad
from tests.cli.support import complaint, spotbatch
from tests.jobs.support import write_target

COMMAND = Path(sysconfig.get_path("scripts")) / "spotbatch"
REFUSED = JOB_FILES | INPUTS
AS_PROCESSES = ("no YAML", "an unknown key", "a torn archive", "no Parquet", "rows as requests")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a target in it."""
    monkeypatch.chdir(tmp_path)
    write_target(tmp_path / "target")
    return tmp_path


def write(folder: Path, bad: Bad) -> Path:
    for name, data in bad.files.items():
        (folder / name).write_bytes(data)
    path = folder / "job.yaml"
    path.write_bytes(bad.job if isinstance(bad.job, bytes) else bad.job.encode())
    return path


def test_there_are_at_least_sixty() -> None:
    assert len(REFUSED) + len(ROWS) >= 60


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_one_sentence_and_nothing_is_written(folder: Path, name: str) -> None:
    write(folder, REFUSED[name])
    before = sorted(folder.rglob("*"))
    assert REFUSED[name].words in complaint(spotbatch("plan", "job.yaml", "--write"))
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("name", ROWS)
def test_rows_in_trouble_are_told_and_planned(folder: Path, name: str) -> None:
    write(folder, ROWS[name])
    result = spotbatch("validate", "job.yaml")
    assert result.exit_code == 0
    assert "1 of them will be error rows" in result.stdout
    assert ROWS[name].words in result.stderr
    assert not (folder / "out").exists()


@pytest.mark.cli
@pytest.mark.parametrize("name", AS_PROCESSES)
def test_as_a_process_it_exits_with_two(folder: Path, name: str) -> None:
    write(folder, REFUSED[name])
    command = [str(COMMAND), "plan", "job.yaml", "--write"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.strip().splitlines()
    assert REFUSED[name].words in line
    assert not (folder / "out").exists()
