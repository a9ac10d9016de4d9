"""The store in S3 or a compatible server, under a prefix of one bucket.

Creating is a single conditional request (`If-None-Match: *`); the server decides between writers.
Data files are created under names that one attempt alone uses, so that an upload in parts, which
is no single request, races with nobody. Nothing is renamed, appended or written as a stream.
"""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from manifests.errors import ManifestError, MissingError, RefusedError
from manifests.keys import check_key
from manifests.store.s3.location import Location
from manifests.store.s3.objects import S3Objects


class S3Store:
    """Create-once objects in a bucket."""

    def __init__(self, location: Location, *, objects: S3Objects) -> None:
        self._location = location
        self._objects = objects

    @property
    def uri(self) -> str:
        """`s3://bucket/prefix`."""
        return self._location.uri

    def probe(self) -> None:
        """Prove that create-if-absent and fresh listings hold; raises the remedy."""
        if not self._location.prefix:
            raise ManifestError(
                f"output.uri {self.uri!r}: a job needs a prefix of its own, as in {self.uri}/my-job"
            )
        name = f".probe-{secrets.token_hex(8)}"
        path = f"{self._location.path}/{name}"
        self._objects.create(path, b"first", about=f"{self.uri}/{name}")
        try:
            self._require_refusal(path, about=f"{self.uri}/{name}")
            self._require_listed(path)
        finally:
            self._objects.delete(path, about=f"{self.uri}/{name}")

    def _require_refusal(self, path: str, *, about: str) -> None:
        try:
            self._objects.create(path, b"second", about=about)
        except RefusedError:
            return
        raise ManifestError(
            f"output.uri {self.uri!r}: the server lets a second writer replace an object that "
            "exists, since it ignores If-None-Match; use S3, or a server that honours conditional "
            "writes"
        )

    def _require_listed(self, path: str) -> None:
        _, _, key = path.partition("/")
        place = Location(bucket=self._location.bucket, prefix=key)
        if [facts.path for facts in self._objects.list(place, about=self.uri)] != [path]:
            raise ManifestError(
                f"output.uri {self.uri!r}: the server does not list an object that was just "
                "created; use a server with consistent listings"
            )

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Create an object from bytes, or raise `RefusedError` or `UnknownOutcomeError`."""
        self._objects.create(self._path(key), data, about=self._about(key))

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """Create an object from a local file's bytes, with the outcomes of `put_if_absent`."""
        self._objects.create_from_file(self._path(key), path, about=self._about(key))

    def put_advisory(self, key: str, data: bytes) -> None:
        """Create or replace an object that only informs; one attempt."""
        self._objects.replace(self._path(key), data, about=self._about(key))

    def get(self, key: str) -> bytes:
        """An object's bytes; `MissingError` if it is not there."""
        with self._naming(key):
            return self._objects.read(self._path(key), about=self._about(key))

    @contextmanager
    def open_local(self, key: str) -> Iterator[Path]:
        """A temporary copy of the object."""
        with tempfile.TemporaryDirectory(prefix="spotbatch-") as folder:
            target = Path(folder) / "object"
            with self._naming(key):
                self._objects.download(self._path(key), target, about=self._about(key))
            yield target

    @contextmanager
    def open_reader(self, key: str) -> Iterator[BinaryIO]:
        """A seekable reader that fetches ranges of the object."""
        with self._naming(key):
            reader = self._objects.open_reader(self._path(key), about=self._about(key))
        with reader:
            yield reader

    def list(self, prefix: str) -> list[str]:
        """Sorted keys that start with the prefix; hidden names and folder marks are left out."""
        root = f"{self._location.path}/"
        _, _, start = root.partition("/")
        place = Location(bucket=self._location.bucket, prefix=start + prefix)
        found = self._objects.list(place, about=f"{self.uri}/{prefix}")
        keys = [facts.path.removeprefix(root) for facts in found]
        return sorted(key for key in keys if _is_visible(key))

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is success."""
        self._objects.delete(self._path(key), about=self._about(key))

    def _path(self, key: str) -> str:
        return f"{self._location.path}/{check_key(key)}"

    def _about(self, key: str) -> str:
        return f"{key} in {self.uri}"

    @contextmanager
    def _naming(self, key: str) -> Iterator[None]:
        try:
            yield
        except MissingError as error:
            raise MissingError(f"{key} is not in {self.uri}") from error


def _is_visible(key: str) -> bool:
    name = key.rpartition("/")[2]
    return bool(name) and name[0] != "."
