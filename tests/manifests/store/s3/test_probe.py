"""The probe of a store in S3, over objects that misbehave as no test server does."""

from collections.abc import Iterator
from typing import Any

import pytest

from manifests.errors import ManifestError, RefusedError
from manifests.store.s3 import Location, S3Store
from manifests.store.s3.objects import ObjectFacts


class Objects:
    """Stands for the objects of a bucket."""

    def __init__(self, *, refuses: bool = True, lists: bool = True) -> None:
        self._refuses = refuses
        self._lists = lists
        self.paths: list[str] = []

    def create(self, path: str, data: bytes, *, about: str) -> None:
        """Keeps the name."""
        if path in self.paths and self._refuses:
            raise RefusedError(about)
        self.paths.append(path)

    def list(self, location: Location, *, about: str) -> Iterator[ObjectFacts]:
        """Where it lists at all."""
        for path in self.paths if self._lists else ():
            yield ObjectFacts(path=path, bytes=0, etag="")

    def delete(self, path: str, *, about: str) -> None:
        """Forgets the name."""
        self.paths = [other for other in self.paths if other != path]


def store_over(objects: Any, *, prefix: str = "job") -> S3Store:
    return S3Store(Location(bucket="bucket", prefix=prefix), objects=objects)


def test_a_good_store_passes_and_nothing_is_left() -> None:
    objects = Objects()
    store_over(objects).probe()
    assert objects.paths == []


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({"refuses": False}, "ignores If-None-Match; use S3, or a server that honours"),
        ({"lists": False}, "does not list an object that was just created; use a server with"),
    ],
)
def test_a_store_that_breaks_a_requirement_is_refused_with_the_remedy_and_nothing_is_left(
    faults: dict[str, bool], words: str
) -> None:
    objects = Objects(**faults)
    with pytest.raises(ManifestError, match=words):
        store_over(objects).probe()
    assert objects.paths == []


def test_a_job_needs_a_prefix_of_its_own() -> None:
    with pytest.raises(ManifestError, match=r"as in s3://bucket/my-job"):
        store_over(Objects(), prefix="").probe()
