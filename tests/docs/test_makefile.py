"""Targets install what they need in a fresh clone, and nothing twice."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.documents import ROOT

pytestmark = pytest.mark.cli
INPUTS = ("Makefile", "pyproject.toml", "constraints.txt")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A fresh clone, as far as the Makefile can see."""
    for file in INPUTS:
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def planned(clone: Path, *targets: str) -> str:
    """The commands that make would run."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    done = subprocess.run(
        ["make", "--dry-run", *targets],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def installed(clone: Path, *, later_s: int) -> None:
    """Leave the stamp of an installation, so many seconds after the newest of its inputs."""
    newest = max((clone / file).stat().st_mtime for file in INPUTS)
    stamp = clone / ".venv" / ".installed"
    stamp.parent.mkdir()
    stamp.touch()
    os.utime(stamp, (newest + later_s, newest + later_s))


@pytest.mark.parametrize(
    "target",
    ["demo", "test", "coverage", "report-check", "soak", "check", "train-tiny", "bench", "format"],
)
def test_a_target_installs_first_in_a_fresh_clone(clone: Path, target: str) -> None:
    lines = planned(clone, target).splitlines()
    assert lines[0] == "python3 -m venv .venv"
    assert lines[1].endswith("install --disable-pip-version-check -c constraints.txt -e '.[dev]'")
    assert lines[2] == "touch .venv/.installed"
    assert len(lines) > 3


@pytest.mark.parametrize("target", ["setup", "demo", "test", "check"])
def test_a_target_installs_nothing_twice(clone: Path, target: str) -> None:
    installed(clone, later_s=10)
    assert "install" not in planned(clone, target)


def test_changed_requirements_are_installed(clone: Path) -> None:
    installed(clone, later_s=-10)
    assert "pip install" in planned(clone, "setup")


def test_without_a_target_make_lists_the_targets() -> None:
    done = subprocess.run(
        ["make"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    listed = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("make ")}
    assert {"setup", "demo", "test", "check", "train-tiny", "bench"} <= listed


def test_continuous_integration_runs_checks_and_tests() -> None:
    script = (ROOT / ".ci/run").read_text()
    assert "\nmake check\n" in script
    assert "\nmake test\n" in script
    assert os.access(ROOT / ".ci/run", os.X_OK)
