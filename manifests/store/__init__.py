"""The store: create-once objects under strict keys. `open_store` picks the kind from the URI."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from manifests.errors import ManifestError
from manifests.job_running import Storage
from manifests.store.base import Store, is_s3
from manifests.store.local import LocalStore
from manifests.store.memory import MemoryStore

__all__ = ["LocalStore", "MemoryStore", "Store", "is_s3", "open_store"]


def open_store(uri: str, storage: Storage | None = None) -> Store:
    """The store at a local path, `file://` URI or `s3://bucket/prefix`.

    Creates nothing; whoever is going to write calls `probe`. Without `storage`, S3 is reached as
    the environment of the process says.
    """
    if is_s3(uri):
        return _open_s3(uri, storage or Storage())
    if "://" not in uri:
        return LocalStore(Path(uri))
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise ManifestError(
            f"output.uri {uri!r}: use a local path, file:///absolute/path or s3://bucket/prefix"
        )
    return LocalStore(Path(unquote(parts.path)))


def _open_s3(uri: str, storage: Storage) -> Store:
    # Half a second that commands on local jobs need not wait.
    from manifests.store.s3 import S3Client, S3Objects, S3Store, parse_location

    location = parse_location(uri, field="output.uri")
    return S3Store(location, objects=S3Objects(S3Client(storage)))
