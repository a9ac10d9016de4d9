"""What an attempt has done, line by line, so that a failed one can be understood afterwards.

Lines name rows by id and samples by number; no prompt, output or message of an error gets in. The
file is local while the attempt runs and goes with it if it ends well. If it fails, the last 256 KiB
are stored beside its failure record. A process that dies cannot do that itself: the next worker of
the job on the same node finds the file, sees that its process is gone, and stores it.
"""

import json
import os
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path

import psutil

from manifests.errors import ManifestError
from manifests.journal import write_log
from manifests.keys import check_key, log_key
from manifests.store.base import Store
from workers.clock import utc_now
from workers.samples import OutputSample

MAX_LOG_BYTES = 256 * 1024


def log_folder(job_id: str) -> Path:
    """The folder on this node for logs of one job, of this user only; created if missing."""
    folder = Path(tempfile.gettempdir()) / f"spotbatch-logs-{os.getuid()}"
    for each in (folder, folder / check_key(job_id)):
        each.mkdir(mode=0o700, exist_ok=True)
        if each.is_symlink() or each.stat().st_uid != os.getuid():
            raise PermissionError(f"{each} belongs to somebody else; remove it")
    return folder / job_id


class AttemptLog:
    """The log of one attempt; closed when the attempt is over. A full disk only costs lines."""

    def __init__(self, folder: Path, *, shard: int, attempt: str) -> None:
        self._shard = shard
        self._attempt = attempt
        name = Path(log_key(shard, attempt)).name
        self._path = folder / f"{os.getpid()}-{name}"

    def say(self, line: str) -> None:
        """Add one line; it is in the system's hands at once, so that no death loses it."""
        text = f"{utc_now()} {line}\n"
        with suppress(OSError), self._path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)

    def finished(self, sample: OutputSample, *, row_id: str) -> None:
        """A sample came out of the engine."""
        how = sample.error_class or f"{sample.finish_reason}, {sample.num_tokens} tokens"
        self.say(f"row {sample.row} (id {json.dumps(row_id)}) sample {sample.sample}: {how}")

    def failed(self, error: BaseException) -> None:
        """The attempt ends with this: its class and the lines of code, without its words."""
        self.say(f"failed with {type(error).__name__}")
        for frame in traceback.extract_tb(error.__traceback__):
            self.say(f"  {frame.filename}:{frame.lineno} in {frame.name}")

    def publish(self, store: Store) -> None:
        """Store the end of the log; raises what storage raises."""
        write_log(store, shard=self._shard, attempt=self._attempt, tail=_tail(self._path))

    def close(self) -> None:
        """The attempt is over, and this file with it."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def _tail(path: Path) -> bytes:
    """The last whole lines of a file, at most 256 KiB of them."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MAX_LOG_BYTES))
        data = file.read()
    return data if size <= MAX_LOG_BYTES else data.partition(b"\n")[2]


def publish_orphans(store: Store, folder: Path) -> None:
    """Store the logs of attempts whose process is gone; whoever fails at one leaves it there."""
    for path in sorted(folder.glob("*.log")):
        pid, _, name = path.name.partition("-")
        shard, _, attempt = name.removesuffix(".log").partition("-")
        if pid.isdigit() and psutil.pid_exists(int(pid)):
            continue
        with suppress(OSError, ManifestError, ValueError):
            write_log(store, shard=int(shard), attempt=attempt, tail=_tail(path))
            path.unlink(missing_ok=True)
