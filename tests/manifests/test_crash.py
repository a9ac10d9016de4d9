"""A process that dies at any step of a commit or a seal leaves a job that can be completed."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from manifests.protocol import commit_shard, read_records, read_seal, seal_job
from manifests.verification import verify_structure
from tests.manifests.builders import StoredJob, make_job

pytestmark = pytest.mark.crash

STEPS = ("open", "mkdir", "fsync", "link", "unlink")
DIED = 77
MINE = "a" * 16


class Counter:
    """Counts the system calls that matter, and dies just before the one asked for."""

    def __init__(self, *, die_at: int | None) -> None:
        self.num_calls = 0
        self._die_at = die_at

    def install(self, patch: Callable[[str, Any], None]) -> None:
        """Wrap the calls; `patch` sets one attribute of `os`."""
        for name in STEPS:
            patch(name, self._wrapped(getattr(os, name)))

    def _wrapped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if self.num_calls == self._die_at:
                os._exit(DIED)
            self.num_calls += 1
            return real(*arguments, **options)

        return call


def die_at(step: int, action: Callable[[], object]) -> int:
    """Run the action in a process of its own that dies at a step; its exit status."""
    child = os.fork()
    if child == 0:
        try:
            Counter(die_at=step).install(lambda name, call: setattr(os, name, call))
            action()
        finally:  # never return into pytest
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def commit_mine(job: StoredJob, path: Path) -> Callable[[], object]:
    """Attempt MINE at shard 0, its file being ready."""
    record = job.record(0, attempt=MINE, path=path)
    return lambda: commit_shard(job.store, record=record, data_path=path)


def num_steps(action: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many steps the action has when nothing dies."""
    counter = Counter(die_at=None)
    with monkeypatch.context() as patch:
        counter.install(lambda name, call: patch.setattr(os, name, call))
        action()
    return counter.num_calls


def test_a_death_at_any_step_of_a_commit_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = make_job(tmp_path / "trial")
    action = commit_mine(trial, trial.attempt_file(0, attempt=MINE))
    total = num_steps(action, monkeypatch)
    assert total > 10
    winners = set()
    for step in range(total):
        job = make_job(tmp_path / str(step))
        action = commit_mine(job, job.attempt_file(0, attempt=MINE))
        assert die_at(step, action) == DIED
        assert verify_structure(job.store) == []
        for shard in (0, 1):
            job.commit(shard)
        seal_job(job.store, job.plan)
        assert verify_structure(job.store) == []
        winners.add(read_records(job.store, job.plan)[0].attempt == MINE)
    assert winners == {True, False}


def test_a_death_at_any_step_of_the_seal_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def complete(name: str) -> StoredJob:
        job = make_job(tmp_path / name)
        for shard in (0, 1):
            job.commit(shard)
        return job

    trial = complete("trial")
    total = num_steps(lambda: seal_job(trial.store, trial.plan), monkeypatch)
    expected = trial.store.get("seals/0000.json")
    for step in range(total):
        job = complete(str(step))
        assert die_at(step, partial(seal_job, job.store, job.plan)) == DIED
        seal_job(job.store, job.plan)
        assert (read_seal(job.store), job.store.get("seals/0000.json")) == (
            read_seal(trial.store),
            expected,
        )
        assert verify_structure(job.store) == []
