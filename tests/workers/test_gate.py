"""The test hook: holds where it is told to, and nowhere else."""

import os
from pathlib import Path
from threading import Thread

import pytest

from tests.workers.conditions import wait_for
from workers.gate import VARIABLE, Gate, folder_from_environment


def test_without_a_folder_every_row_passes() -> None:
    Gate(None).wait(shard=0, row=0)


def test_rows_without_a_hold_pass_and_leave_no_trace(tmp_path: Path) -> None:
    (tmp_path / "hold-1-2").touch()
    Gate(str(tmp_path)).wait(shard=2, row=1)
    assert [path.name for path in tmp_path.iterdir()] == ["hold-1-2"]


def test_a_held_row_says_who_waits_and_goes_on_when_the_hold_is_gone(tmp_path: Path) -> None:
    hold, reached = tmp_path / "hold-1-2", tmp_path / "reached-1-2"
    hold.touch()
    thread = Thread(target=Gate(str(tmp_path)).wait, kwargs={"shard": 1, "row": 2})
    thread.start()
    wait_for(lambda: reached.exists() and reached.read_text() != "", what="the held row")
    assert reached.read_text() == str(os.getpid())
    assert thread.is_alive()
    hold.unlink()
    thread.join(20)
    assert not thread.is_alive()


def test_the_folder_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder_from_environment() is None
    monkeypatch.setenv(VARIABLE, "/gate")
    assert folder_from_environment() == "/gate"
