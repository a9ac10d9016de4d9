"""The store: create-once objects under strict keys. `open_store` picks the kind from the URI."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from manifests.errors import ManifestError
from manifests.store.base import Store
from manifests.store.local import LocalStore
from manifests.store.memory import MemoryStore

__all__ = ["LocalStore", "MemoryStore", "Store", "open_store"]


def open_store(uri: str) -> Store:
    """The store at a local path or `file://` URI. Creates nothing; a planner calls `probe`."""
    if "://" not in uri:
        return LocalStore(Path(uri))
    parts = urlsplit(uri)
    if parts.scheme == "s3":
        raise ManifestError(
            f"output.uri {uri!r}: output to S3 is not supported by this version; "
            "use a directory on a file system that all workers share"
        )
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise ManifestError(f"output.uri {uri!r}: use a local path or file:///absolute/path")
    return LocalStore(Path(unquote(parts.path)))
