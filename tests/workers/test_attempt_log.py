"""Logs of attempts: what is in them, what never is, and who stores them."""

import os
from pathlib import Path
from subprocess import run

import pytest

from manifests.keys import log_key
from manifests.store import MemoryStore
from workers.attempt_log import MAX_LOG_BYTES, AttemptLog, log_folder, publish_orphans
from workers.samples import OutputSample

ATTEMPT = "0123456789abcdef"
GOOD = OutputSample(
    shard=3, row=0, sample=0, key=1, text="a secret", token_ids=(1, 2), finish_reason="stop"
)
BAD = OutputSample(
    shard=3, row=1, sample=1, key=1, error_class="TooLong", error_message="it quotes a secret"
)
KEY = log_key(3, ATTEMPT)


@pytest.fixture
def log(tmp_path: Path) -> AttemptLog:
    return AttemptLog(tmp_path, shard=3, attempt=ATTEMPT)


def stored(log: AttemptLog) -> str:
    """What publishing puts into a store."""
    store = MemoryStore()
    log.publish(store)
    return store.get(KEY).decode()


def test_samples_are_named_and_their_text_is_not_told(log: AttemptLog) -> None:
    log.finished(GOOD, row_id="id\n7")
    log.finished(BAD, row_id="id8")
    first, second = stored(log).splitlines()
    assert first.endswith('row 0 (id "id\\n7") sample 0: stop, 2 tokens')
    assert second.endswith('row 1 (id "id8") sample 1: TooLong')
    assert "secret" not in stored(log)


def test_an_error_is_told_by_its_class_and_place_and_not_by_its_words(log: AttemptLog) -> None:
    try:
        raise ValueError("a secret")
    except ValueError as error:
        log.failed(error)
    text = stored(log)
    assert "failed with ValueError" in text
    assert f"{Path(__file__).name}:" in text
    assert "secret" not in text


def test_the_last_whole_lines_of_a_long_log_are_kept(log: AttemptLog) -> None:
    for number in range(6000):
        log.say(f"{number:050d}")
    text = stored(log)
    assert MAX_LOG_BYTES - 100 < len(text) <= MAX_LOG_BYTES
    lines = text.splitlines()
    assert lines[-1].endswith(f"{5999:050d}")
    assert len({len(line) for line in lines}) == 1


def test_a_log_goes_with_its_attempt(log: AttemptLog, tmp_path: Path) -> None:
    log.say("a line")
    log.close()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_costs_lines_and_nothing_else(tmp_path: Path) -> None:
    log = AttemptLog(tmp_path / "absent", shard=3, attempt=ATTEMPT)
    log.say("lost")
    log.close()
    assert list(tmp_path.iterdir()) == []


def orphan(folder: Path, *, pid: int, name: str = f"00000003-{ATTEMPT}.log") -> Path:
    """A log file of some process."""
    path = folder / f"{pid}-{name}"
    path.write_bytes(b"a line\n")
    return path


def test_the_log_of_a_process_that_died_is_stored_by_the_next_one(tmp_path: Path) -> None:
    # A process that has ended, and whose id is not in use again yet.
    pid = int(run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout)
    path = orphan(tmp_path, pid=pid)
    store = MemoryStore()
    publish_orphans(store, tmp_path)
    assert (store.get(KEY), path.exists()) == (b"a line\n", False)


def test_logs_of_the_living_and_other_files_are_left_alone(tmp_path: Path) -> None:
    mine = orphan(tmp_path, pid=os.getpid())
    other = orphan(tmp_path, pid=2**22 + 1, name="notes.log")
    store = MemoryStore()
    publish_orphans(store, tmp_path)
    assert store.list("") == []
    assert mine.exists()
    assert other.exists()


def test_the_folder_belongs_to_one_user_and_one_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = log_folder("0" * 16)
    assert folder == log_folder("0" * 16)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        log_folder("0" * 16)
