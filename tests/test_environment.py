"""The scrubbed environment and the leak check, shown to work."""

import os
import subprocess
import sys

import pytest

from tests.conftest import FIXED, living_children, scrub_environment


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "RAY_ADDRESS", "HF_TOKEN", "PYTHONPATH"])
def test_variables_of_whoever_runs_the_tests_are_removed(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "something")
    scrub_environment()
    assert name not in os.environ


def test_where_a_browser_is_stays_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOTBATCH_CHROMIUM", "/opt/chromium")
    scrub_environment()
    assert os.environ["SPOTBATCH_CHROMIUM"] == "/opt/chromium"


def test_fixed_variables_hold() -> None:
    assert FIXED.items() <= os.environ.items()


def test_a_living_child_process_is_seen() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert child.pid in [process.pid for process in living_children()]
    finally:
        child.communicate()
    assert child.pid not in [process.pid for process in living_children()]
