"""What a job asks of its storage.

A store must give: atomic visibility (no reader ever sees part of an object), mutual exclusion
(among any number of writers of an absent key exactly one wins) and a fresh listing.

A write has three outcomes: it returns (done and durable), raises `RefusedError` (an object is
there, and is durable) or raises `UnknownOutcomeError` (only reading, or writing again, tells).
Every other exception means that nothing was published. Below us a request may be sent twice, so a
refusal can be about the caller's own object: whoever has to know whose it is, reads it. Objects
are never changed, but for those written by `put_advisory`, which no decision may rest on.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Protocol

S3_SCHEME = "s3://"


def is_s3(uri: str) -> bool:
    """Whether a URI names something in S3."""
    return uri.startswith(S3_SCHEME)


class Store(Protocol):
    """Create-once objects under relative keys (`manifests.keys`)."""

    @property
    def uri(self) -> str:
        """Where the store is, for messages and for opening it in another process."""
        ...

    def probe(self) -> None:
        """Create the place and prove that create-if-absent holds; raises with the remedy."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Create an object from bytes, or raise `RefusedError` or `UnknownOutcomeError`."""
        ...

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """Create an object from a local file's bytes, with the outcomes of `put_if_absent`."""
        ...

    def put_advisory(self, key: str, data: bytes) -> None:
        """Create or replace an object that only informs (presence)."""
        ...

    def get(self, key: str) -> bytes:
        """An object's bytes; `MissingError` if it is not there."""
        ...

    def open_local(self, key: str) -> AbstractContextManager[Path]:
        """A local file with the object's bytes, for reading inside the context only."""
        ...

    def open_reader(self, key: str) -> AbstractContextManager[BinaryIO]:
        """A seekable reader that fetches only what is read, valid inside the context."""
        ...

    def list(self, prefix: str) -> list[str]:
        """Sorted keys that start with the prefix, read afresh."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is success."""
        ...
