"""A node's cache of model directories: each fetched once, checked, limited in size.

An entry is a directory named by the names, lengths and SHA-256 of its files; it appears by a rename
after all of them were checked, so an entry that is there is whole. One lock for the whole cache is
held while somebody looks, fetches or makes room; the process that uses an entry holds a shared lock
on it for as long as it lives, and an entry in use is never removed. What a dead process left half
fetched is removed by the next one. Beside the entries are notes: small facts that are dear to find
out again, such as the hash of a local file that has not changed since.
"""

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from manifests.hashing import canonical_json, sha256_file, sha256_hex
from workers.errors import ModelFilesError

GIB = 2**30
_ENTRY = "model-"
_TEMPORARY = "fetching-"
Fetch = Callable[[str, Path], None]
"""Brings the file of a name to a path."""

# Shared locks of this process on what it uses; the operating system drops them with the process.
_in_use: dict[Path, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedFile:
    """A file of an entry."""

    name: str
    bytes: int
    sha256: str


class ModelCache:
    """The cache in one directory."""

    def __init__(self, folder: Path, *, limit_bytes: int) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone among all processes of the node."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._folder / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def directory(self, files: Sequence[CachedFile], *, fetch: Fetch) -> Path:
        """The entry with exactly these files, fetched if it is not there; kept while we live.

        Raises `ModelFilesError` if a file is not what it should be, or if there is no room.
        """
        with self.locked():
            entry = self._entry(files)
            if not entry.is_dir():
                absent = [file for file in files if self._copy_of(file) is None]
                self._make_room(sum(file.bytes for file in absent))
                self._fetch(entry, files, fetch=fetch)
            self._use(entry)
        return entry

    def adopt(self, names: Sequence[str], *, num_bytes: int, fetch: Fetch) -> list[CachedFile]:
        """Fetch files whose hashes nobody knows yet; they become an entry."""
        with self.locked():
            self._make_room(num_bytes)
            folder = self._temporary()
            for name in names:
                fetch(name, folder / name)
            files = [_facts(folder / name) for name in names]
            self._publish(folder, self._entry(files), files=files)
            return files

    def note(self, *subject: object) -> str | None:
        """What was noted about a subject."""
        path = self._note_path(subject)
        return path.read_text() if path.is_file() else None

    def take_note(self, *subject: object, text: str) -> None:
        """Note something about a subject."""
        path = self._note_path(subject)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        temporary.write_text(text)
        temporary.replace(path)

    def _note_path(self, subject: tuple[object, ...]) -> Path:
        return self._folder / "notes" / sha256_hex(canonical_json([str(part) for part in subject]))

    def _entry(self, files: Sequence[CachedFile]) -> Path:
        facts = sorted((file.name, file.bytes, file.sha256) for file in files)
        digest = sha256_hex(canonical_json([list(fact) for fact in facts]))
        return self._folder / f"{_ENTRY}{digest[:32]}"

    def _temporary(self) -> Path:
        """A new directory to fetch into; those of the dead go, since we are alone."""
        for left in self._folder.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(left)
        folder = self._folder / f"{_TEMPORARY}{secrets.token_hex(8)}"
        folder.mkdir()
        return folder

    def _fetch(self, entry: Path, files: Sequence[CachedFile], *, fetch: Fetch) -> None:
        folder = self._temporary()
        for file in files:
            self._bring(file, folder / file.name, fetch=fetch)
            if _facts(folder / file.name) != file:
                raise ModelFilesError(
                    f"{file.name} is not the file that the job was planned with; restore it, or "
                    "plan a new job for the changed model"
                )
        self._publish(folder, entry, files=files)

    def _bring(self, file: CachedFile, path: Path, *, fetch: Fetch) -> None:
        """A file by a link to a copy in another entry, or else from where it is."""
        copy = self._copy_of(file)
        if copy is None:
            fetch(file.name, path)
        else:
            os.link(copy, path)

    def _copy_of(self, file: CachedFile) -> Path | None:
        noted = self.note("copy of", file.sha256)
        path = None if noted is None else Path(noted)
        return path if path is not None and path.is_file() else None

    def _publish(self, folder: Path, entry: Path, *, files: Sequence[CachedFile]) -> None:
        for file in files:
            with (folder / file.name).open("rb") as opened:
                os.fsync(opened.fileno())
        if entry.exists():  # fetched under another listing before
            shutil.rmtree(folder)
        else:
            folder.rename(entry)
        for file in files:
            self.take_note("copy of", file.sha256, text=str(entry / file.name))

    def _use(self, entry: Path) -> None:
        if entry not in _in_use:
            _in_use[entry] = os.open(_lock_file(entry), os.O_RDWR | os.O_CREAT, 0o666)
            fcntl.flock(_in_use[entry], fcntl.LOCK_SH)
        os.utime(_lock_file(entry))

    def _make_room(self, num_bytes: int) -> None:
        for entry in sorted(self._folder.glob(f"{_ENTRY}*"), key=_last_used):
            if self._size() + num_bytes <= self._limit_bytes:
                return
            _remove_unused(entry)
        if self._size() + num_bytes > self._limit_bytes:
            raise ModelFilesError(
                f"the model cache {self._folder} has no room: {num_bytes / GIB:.3f} GiB are needed "
                f"beside {self._size() / GIB:.3f} GiB in use, and storage.cache_gib allows "
                f"{self._limit_bytes / GIB:.3f}; raise it"
            )

    def _size(self) -> int:
        """Bytes of all entries; a file that two entries share counts once."""
        facts = [path.stat() for path in self._folder.glob(f"{_ENTRY}*/*")]
        return sum({one.st_ino: one.st_size for one in facts}.values())


def _facts(path: Path) -> CachedFile:
    return CachedFile(name=path.name, bytes=path.stat().st_size, sha256=sha256_file(path))


def _lock_file(entry: Path) -> Path:
    return entry.with_name(f"use-{entry.name}")


def _last_used(entry: Path) -> float:
    lock = _lock_file(entry)
    return lock.stat().st_mtime if lock.exists() else 0.0


def _remove_unused(entry: Path) -> None:
    """Remove an entry unless a process uses it."""
    with _lock_file(entry).open("ab") as lock, suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(entry)


def files_to_text(files: Sequence[CachedFile]) -> str:
    """Files for a note."""
    return json.dumps([[file.name, file.bytes, file.sha256] for file in files])


def files_from_text(text: str) -> list[CachedFile]:
    """Files out of a note."""
    return [CachedFile(name=n, bytes=b, sha256=s) for n, b, s in json.loads(text)]
