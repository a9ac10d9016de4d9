"""The store on a local or shared POSIX file system.

Publishing is: temporary file beside the target (hidden name) -> write -> fsync -> hard link to the
final name -> fsync of the directory -> unlink of the temporary name. A hard link fails if the name
exists, so it is the one step that decides between writers; a rename would overwrite. A crash at any
point leaves either nothing visible or the whole object. Torn temporary files keep hidden names,
which no listing shows.
"""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

from manifests.errors import ManifestError, MissingError, RefusedError, UnknownOutcomeError
from manifests.keys import check_key

_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class LocalStore:
    """Create-once objects as files under one directory."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.abspath(root.expanduser()))
        self._durable: set[Path] = set()

    @property
    def uri(self) -> str:
        """The absolute path of the directory."""
        return str(self._root)

    def probe(self) -> None:
        """Create the directory and prove hard links and exclusive creation; raises the remedy."""
        try:
            self._make_durable(self._root)
            self._probe_exclusive_links()
        except OSError as error:
            raise ManifestError(
                f"output.uri {self.uri!r} cannot hold a job ({error}); use a writable directory on "
                "a file system with hard links"
            ) from error

    def _probe_exclusive_links(self) -> None:
        target = self._root / f".probe-{secrets.token_hex(8)}"
        temporary = _write_temporary(target, lambda file: None)
        try:
            os.link(temporary, target)
            with suppress(FileExistsError):
                os.link(temporary, target)
                raise ManifestError(
                    f"output.uri {self.uri!r}: the file system lets a second writer replace a "
                    "file that exists; use a local disk or another shared file system"
                )
        finally:
            temporary.unlink()
            target.unlink(missing_ok=True)

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Create an object from bytes, or raise `RefusedError` or `UnknownOutcomeError`."""
        self._publish(key, lambda file: file.write(data))

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """Create an object from a local file's bytes, with the outcomes of `put_if_absent`."""
        with path.open("rb") as source:
            self._publish(key, lambda file: shutil.copyfileobj(source, file))

    def put_advisory(self, key: str, data: bytes) -> None:
        """Create or replace an object that only informs; readers see the old or the new one."""
        path = self._path(key)
        self._make_durable(path.parent)
        os.replace(_write_temporary(path, lambda file: file.write(data)), path)

    def get(self, key: str) -> bytes:
        """An object's bytes; `MissingError` if it is not there."""
        try:
            return self._path(key).read_bytes()
        except _ABSENT as error:
            raise self._missing(key) from error

    @contextmanager
    def open_local(self, key: str) -> Iterator[Path]:
        """The object's own file; it is never changed, and must not be changed."""
        path = self._path(key)
        if not path.is_file():
            raise self._missing(key)
        yield path

    @contextmanager
    def open_reader(self, key: str) -> Iterator[BinaryIO]:
        """The object's own file, open for reading."""
        with self.open_local(key) as path, path.open("rb") as reader:
            yield reader

    def list(self, prefix: str) -> list[str]:
        """Sorted keys that start with the prefix; symbolic links are not followed."""
        # Only the folder part can narrow the walk; the rest of the prefix is compared as text.
        folder = prefix.rpartition("/")[0]
        start = self._path(folder) if folder else self._root
        found = []
        for directory, _, names in os.walk(start):
            relative = Path(directory).relative_to(self._root)
            found += [(relative / name).as_posix() for name in names if name[0] != "."]
        return sorted(key for key in found if key.startswith(prefix))

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is success."""
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)

    def _missing(self, key: str) -> MissingError:
        return MissingError(f"{key} is not in {self.uri}")

    def _publish(self, key: str, fill: Callable[[IO[bytes]], object]) -> None:
        path = self._path(key)
        self._make_durable(path.parent)
        temporary = _write_temporary(path, fill)
        try:
            self._link(temporary, path)
        finally:
            # Whatever happened, the temporary name has no further use; a sweep may find it.
            with suppress(OSError):
                temporary.unlink()

    def _link(self, temporary: Path, path: Path) -> None:
        key = path.relative_to(self._root).as_posix()
        try:
            os.link(temporary, path)
        except FileExistsError as error:
            # The winner may have died before its own fsync; who is refused relies on the object.
            _sync_published(path.parent, key=key)
            raise RefusedError(f"{key} exists already") from error
        _sync_published(path.parent, key=key)

    def _make_durable(self, directory: Path) -> None:
        """Create a directory so that it outlives a power loss; once per process and directory."""
        if directory in self._durable:
            return
        inside = directory != self._root and directory.is_relative_to(self._root)
        if inside or not directory.parent.is_dir():
            self._make_durable(directory.parent)
        directory.mkdir(exist_ok=True)
        _sync_directory(directory.parent)
        self._durable.add(directory)


def _write_temporary(target: Path, fill: Callable[[IO[bytes]], object]) -> Path:
    """A whole, synced file beside the target. After a failure it is removed, never synced again."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _sync_published(directory: Path, *, key: str) -> None:
    """Make a link durable; if that fails, the object is visible now but may vanish: unknown."""
    try:
        _sync_directory(directory)
    except OSError as error:
        raise UnknownOutcomeError(f"{key} may or may not be durable ({error})") from error


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
