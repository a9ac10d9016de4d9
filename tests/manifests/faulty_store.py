"""A store whose writes have the outcomes that a script says."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Literal

from manifests.errors import UnknownOutcomeError
from manifests.store import Store

Outcome = Literal["fine", "reply lost", "request lost"]


class FaultyStore:
    """Passes everything on; a write takes the next outcome of the script, and `fine` after it."""

    def __init__(self, inner: Store, *, script: Iterable[Outcome]) -> None:
        self._inner = inner
        self._script = list(script)
        self.calls: list[str] = []
        self.before: dict[str, Callable[[], object]] = {}  # what happens just before a call

    @property
    def uri(self) -> str:
        """Where the real store is."""
        return self._inner.uri

    def probe(self) -> None:
        """Never faulty."""
        self._inner.probe()

    def put_if_absent(self, key: str, data: bytes) -> None:
        """As scripted."""
        self._write(key, lambda: self._inner.put_if_absent(key, data))

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """As scripted."""
        self._write(key, lambda: self._inner.put_file_if_absent(key, path))

    def _write(self, key: str, put: Callable[[], None]) -> None:
        self._note(f"put {key}")
        outcome = self._script.pop(0) if self._script else "fine"
        if outcome != "request lost":
            put()
        if outcome != "fine":
            raise UnknownOutcomeError(f"{key}: {outcome}")

    def _note(self, call: str) -> None:
        self.calls.append(call)
        self.before.pop(call, lambda: None)()

    def put_advisory(self, key: str, data: bytes) -> None:
        """Never faulty."""
        self._inner.put_advisory(key, data)

    def get(self, key: str) -> bytes:
        """Never faulty."""
        self._note(f"get {key}")
        return self._inner.get(key)

    def open_local(self, key: str) -> AbstractContextManager[Path]:
        """Never faulty."""
        return self._inner.open_local(key)

    def open_reader(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Never faulty."""
        return self._inner.open_reader(key)

    def list(self, prefix: str) -> list[str]:
        """Never faulty."""
        return self._inner.list(prefix)

    def delete(self, key: str) -> None:
        """Never faulty."""
        self._note(f"delete {key}")
        self._inner.delete(key)
