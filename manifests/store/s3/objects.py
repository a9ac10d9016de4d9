"""Operations on single objects of S3; a path is `bucket/key`, as s3fs names it."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from manifests.errors import StoreError
from manifests.store.s3.client import S3Client
from manifests.store.s3.location import Location
from manifests.store.s3.reader import RangeReader
from manifests.store.s3.upload import PartsUpload

_MIB = 2**20
# What a request may take beside the transfer of its body, which is not expected to be slower than:
_SLOWEST_BYTES_PER_S = _MIB
_READ_BUFFER_BYTES = _MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    """An object as a listing tells of it; `etag` changes with the contents."""

    path: str
    bytes: int
    etag: str


class S3Objects:
    """Objects in any bucket that the client's credentials reach."""

    def __init__(self, client: S3Client) -> None:
        self._client = client
        self._part_bytes = client.storage.part_mib * _MIB
        self._answer_s = client.storage.connect_timeout_s + client.storage.read_timeout_s

    def create(self, path: str, data: bytes, *, about: str) -> None:
        """Create an object from bytes; outcomes as `S3Client.create`."""
        self._client.create(
            # In one request, whatever the size: an empty body is as exclusive as any.
            lambda files: files._pipe_file(path, data, mode="create", chunksize=len(data) + 1),
            about=about,
            timeout_s=self._timeout_s(len(data)),
        )

    def create_from_file(self, path: str, source: Path, *, about: str) -> None:
        """Create an object from a local file, in parts if it is large."""
        if source.stat().st_size <= self._part_bytes:
            self.create(path, source.read_bytes(), about=about)
            return
        PartsUpload(
            client=self._client,
            path=path,
            source=source,
            part_bytes=self._part_bytes,
            about=about,
            timeout_s=self._timeout_s(self._part_bytes),
        ).run()

    def replace(self, path: str, data: bytes, *, about: str) -> None:
        """Create or overwrite an object; tried once, since only the newest is of interest."""
        self._client.ask(
            lambda files: files._pipe_file(path, data),
            about=about,
            timeout_s=self._answer_s,
            attempts=1,
        )

    def read(self, path: str, *, about: str) -> bytes:
        """All bytes, in one request."""
        data: bytes = self._client.ask(
            lambda files: files._cat_file(path, max_concurrency=1),
            about=about,
            timeout_s=self._timeout_s(self._part_bytes),
        )
        return data

    def read_range(self, path: str, start: int, end: int, *, about: str) -> bytes:
        """Bytes from `start` up to `end`; `StoreError` unless all of them came."""
        data: bytes = self._client.ask(
            lambda files: files._cat_file(path, start=start, end=end),
            about=about,
            timeout_s=self._timeout_s(end - start),
        )
        if len(data) != end - start:
            raise StoreError(f"{about}: {len(data)} bytes came, not {end - start}; try again")
        return data

    def download(self, path: str, target: Path, *, about: str) -> None:
        """All bytes into a local file; `StoreError` unless all of them came."""
        facts = self.look_up(path, about=about)
        self._client.ask(
            lambda files: files._get_file(path, str(target), chunksize=self._part_bytes),
            about=about,
            timeout_s=self._timeout_s(facts.bytes),
        )
        found = target.stat().st_size
        if found != facts.bytes:
            raise StoreError(f"{about}: {found} bytes came, not {facts.bytes}; try again")

    def open_reader(self, path: str, *, about: str) -> BinaryIO:
        """A seekable reader that fetches ranges."""
        size = self.look_up(path, about=about).bytes
        raw = RangeReader(
            lambda start, end: self.read_range(path, start, end, about=about), size=size
        )
        return io.BufferedReader(raw, buffer_size=_READ_BUFFER_BYTES)

    def look_up(self, path: str, *, about: str) -> ObjectFacts:
        """An object's size and tag; `MissingError` if it is not there."""
        bucket, _, key = path.partition("/")
        answer = self._client.ask(
            lambda files: files._call_s3("head_object", Bucket=bucket, Key=key),
            about=about,
            timeout_s=self._answer_s,
        )
        return ObjectFacts(path=path, bytes=answer["ContentLength"], etag=answer["ETag"])

    def list(self, location: Location, *, about: str) -> Iterator[ObjectFacts]:
        """All objects whose key starts with the location's prefix, asked for page by page."""
        token: dict[str, str] = {}
        while True:
            page = self._page(location, about=about, token=token)
            for entry in page.get("Contents", ()):
                path = f"{location.bucket}/{entry['Key']}"
                yield ObjectFacts(path=path, bytes=entry["Size"], etag=entry["ETag"])
            if not page.get("IsTruncated"):
                return
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def _page(self, location: Location, *, about: str, token: dict[str, str]) -> dict[str, Any]:
        page: dict[str, Any] = self._client.ask(
            lambda files: files._call_s3(
                "list_objects_v2", Bucket=location.bucket, Prefix=location.prefix, **token
            ),
            about=about,
            timeout_s=self._answer_s,
        )
        return page

    def delete(self, path: str, *, about: str) -> None:
        """Remove an object; one that is not there is success."""
        self._client.ask(lambda files: files._rm_file(path), about=about, timeout_s=self._answer_s)

    def _timeout_s(self, num_bytes: int) -> float:
        return self._answer_s + num_bytes / _SLOWEST_BYTES_PER_S
