"""Operations on objects, as requests."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from manifests.errors import StoreError
from manifests.job_running import Storage
from manifests.store.s3 import Location, S3Objects


class Pages:
    """Stands for the file system: lists 2,500 objects in pages of a thousand."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    async def _call_s3(self, method: str, **arguments: Any) -> dict[str, Any]:
        self.requests.append(arguments)
        start = int(arguments.get("ContinuationToken", 0))
        keys = range(start, min(start + 1000, 2500))
        entries = [{"Key": f"a/{key:04d}", "Size": key, "ETag": "e"} for key in keys]
        page: dict[str, Any] = {"Contents": entries, "IsTruncated": keys.stop < 2500}
        return page | {"NextContinuationToken": str(keys.stop)}


class Short:
    """Stands for the file system: gives less than it is asked for."""

    async def _cat_file(self, path: str, *, start: int, end: int) -> bytes:
        return b"x" * (end - start - 1)


class Direct:
    """Stands for the client: asks once."""

    storage = Storage()

    def __init__(self, files: object) -> None:
        self._files = files

    def ask(self, request: Callable[[Any], Awaitable[Any]], **how: Any) -> Any:
        """The answer of one request."""

        async def asked() -> Any:
            return await request(self._files)

        return asyncio.run(asked())


def objects_over(files: object) -> S3Objects:
    client: Any = Direct(files)
    return S3Objects(client)


def test_a_listing_goes_through_all_pages() -> None:
    pages = Pages()
    place = Location(bucket="bucket", prefix="a/")
    found = list(objects_over(pages).list(place, about=""))
    assert [facts.path for facts in found] == [f"bucket/a/{key:04d}" for key in range(2500)]
    assert [request.get("ContinuationToken") for request in pages.requests] == [
        None,
        "1000",
        "2000",
    ]
    assert {request["Prefix"] for request in pages.requests} == {"a/"}


def test_a_range_that_comes_short_is_an_error() -> None:
    with pytest.raises(StoreError, match="9 bytes came, not 10"):
        objects_over(Short()).read_range("bucket/a", 0, 10, about="a")


class Truncated:
    """Stands for the file system: says an object is longer than what it writes."""

    async def _call_s3(self, method: str, **arguments: Any) -> dict[str, Any]:
        return {"ContentLength": 10, "ETag": "e"}

    async def _get_file(self, path: str, target: str, *, chunksize: int) -> None:
        Path(target).write_bytes(b"123456789")


def test_a_download_that_comes_short_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="9 bytes came, not 10; try again"):
        objects_over(Truncated()).download("bucket/a", tmp_path / "a", about="a")
