"""Only the very process that is meant is killed."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest

from jobs.driver.processes import kill_if_here
from workers.environment import ProcessIdentity, this_process


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits; it is ended with the test."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield child
    child.kill()
    child.wait()
    assert child.stdin is not None
    child.stdin.close()


def identity(child: "subprocess.Popen[bytes]") -> ProcessIdentity:
    created = psutil.Process(child.pid).create_time()
    return replace(this_process(), pid=child.pid, created=created)


def test_a_process_is_killed(child: "subprocess.Popen[bytes]") -> None:
    kill_if_here(identity(child))
    assert child.wait(20) == -9


def test_another_life_under_the_same_number_is_spared(child: "subprocess.Popen[bytes]") -> None:
    kill_if_here(replace(identity(child), created=1.0))
    child.communicate(b"\n")
    assert child.returncode == 0


def test_a_process_of_another_host_is_spared(child: "subprocess.Popen[bytes]") -> None:
    kill_if_here(replace(identity(child), host="elsewhere"))
    child.communicate(b"\n")
    assert child.returncode == 0


def test_a_process_that_is_gone_is_no_trouble(child: "subprocess.Popen[bytes]") -> None:
    gone = identity(child)
    child.communicate(b"\n")
    kill_if_here(gone)
