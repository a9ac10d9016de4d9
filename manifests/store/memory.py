"""The store in this process's memory: for models of the protocol and tests of its callers.

It is gone with the process, and no other process can open it.
"""

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manifests.errors import MissingError, RefusedError
from manifests.keys import check_key


class MemoryStore:
    """Create-once objects in a dictionary; any number of threads may share it."""

    def __init__(self, name: str = "job") -> None:
        self._name = name
        self._objects: dict[str, bytes] = {}
        self._lock = threading.Lock()

    @property
    def uri(self) -> str:
        """A name for messages; nothing can be opened by it."""
        return f"memory:{self._name}"

    def probe(self) -> None:
        """Nothing to prove: the lock makes check and insertion one step."""

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Create an object from bytes, or raise `RefusedError`."""
        check_key(key)
        with self._lock:
            if key in self._objects:
                raise RefusedError(f"{key} exists already")
            self._objects[key] = bytes(data)

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """Create an object from a local file's bytes, or raise `RefusedError`."""
        self.put_if_absent(key, path.read_bytes())

    def put_advisory(self, key: str, data: bytes) -> None:
        """Create or replace an object that only informs."""
        check_key(key)
        with self._lock:
            self._objects[key] = bytes(data)

    def get(self, key: str) -> bytes:
        """An object's bytes; `MissingError` if it is not there."""
        check_key(key)
        with self._lock:
            if key not in self._objects:
                raise MissingError(f"{key} is not in {self.uri}")
            return self._objects[key]

    @contextmanager
    def open_local(self, key: str) -> Iterator[Path]:
        """A temporary file with the object's bytes."""
        data = self.get(key)
        with tempfile.TemporaryDirectory(prefix="spotbatch-") as folder:
            path = Path(folder) / Path(key).name
            path.write_bytes(data)
            yield path

    def list(self, prefix: str) -> list[str]:
        """Sorted keys that start with the prefix."""
        with self._lock:
            return sorted(key for key in self._objects if key.startswith(prefix))

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is success."""
        check_key(key)
        with self._lock:
            self._objects.pop(key, None)
