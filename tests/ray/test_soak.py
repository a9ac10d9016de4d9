"""Workers killed again and again in three ways: nothing lost, nothing doubled, nothing blamed.

`make soak` runs it over ten times as many shards: `SOAK_SHARDS=400`.
"""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from manifests.job_running import Retry
from manifests.journal import read_failures
from tests.manifests.builders import StoredJob, make_job
from tests.ray.conftest import Run
from tests.ray.hooking import Hooks
from tests.ray.outputs import assert_same_outputs, assert_whole

NUM_SHARDS = int(os.environ.get("SOAK_SHARDS", "40"))
MEAN_GAP = 8.0  # shards between two kills
# An exit in an orderly way, the end without a word, and silence.
MODES = (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP)
UNKNOWN = (".__init__", ".report")
pytestmark = [pytest.mark.ray, pytest.mark.timeout(90 + 12 * NUM_SHARDS)]


@pytest.fixture
def job(tmp_path: Path) -> StoredJob:
    """Tiny shards; the last row is an error by itself."""
    return make_job(tmp_path, counts=(2,) * NUM_SHARDS, work="null")


def workers(*, known: bool) -> list[psutil.Process]:
    """The processes of living actors that this test's cluster has.

    Ray names a process after the call that it runs. A driver knows workers that have reported: of
    one that is frozen before, nothing tells it from one that waits for a place.
    """
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            title = " ".join(process.cmdline())
            is_new = any(call in title for call in UNKNOWN)
            if title.startswith("ray::Worker") and process.status() != "stopped":
                found += [] if known and is_new else [process]
        except psutil.NoSuchProcess:
            continue
    return found


@dataclass(kw_only=True)
class Killer:
    """Kills a worker each time some more shards are committed: a Poisson process over shards."""

    num_committed: Callable[[], int]
    random: random.Random
    kills: list[signal.Signals] = field(default_factory=list)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        due = self.random.expovariate(1.0 / MEAN_GAP)
        while not self._is_over.wait(0.05):
            if self.num_committed() >= due and self._kill():
                due += self.random.expovariate(1.0 / MEAN_GAP)

    def _kill(self) -> bool:
        mode = MODES[len(self.kills) % len(MODES)]
        alive = workers(known=mode == signal.SIGSTOP)
        if not alive:
            return False
        self.random.choice(sorted(alive, key=lambda process: process.pid)).send_signal(mode)
        self.kills.append(mode)
        return True

    def stop(self) -> None:
        self._is_over.set()


@pytest.fixture
def killer(job: StoredJob) -> Iterator[Killer]:
    """At work while the test runs."""
    killer = Killer(num_committed=lambda: len(job.store.list("commits/")), random=random.Random(7))
    thread = threading.Thread(target=killer.run)
    thread.start()
    yield killer
    killer.stop()
    thread.join()


def test_a_job_under_poisson_kills_is_the_job_without_them(
    run: Run, job: StoredJob, killer: Killer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = Hooks(tmp_path / "hooks")
    hooks.folder.mkdir()
    hooks.slow(0.02)  # so that kills meet workers that work
    # A worker may be frozen before it is ready, too.
    retry = Retry(lease_s=3.0, starting_s=45.0, infrastructure_attempts=100)
    result = run(workers=2, retry=retry, env=hooks.env)
    killer.stop()
    assert result.outcome == "sealed"
    assert len(killer.kills) >= len(MODES)
    assert_whole(job)
    undisturbed = make_job(tmp_path / "undisturbed", counts=(2,) * NUM_SHARDS, work="null")
    assert_same_outputs(job, undisturbed)
    num_redone = len(read_failures(job.store))
    with capsys.disabled():
        print(
            f"\nsoak: {NUM_SHARDS} shards, {len(killer.kills)} kills, {num_redone} attempts lost "
            f"({num_redone / (NUM_SHARDS + num_redone):.1%} of the work redone)"
        )
