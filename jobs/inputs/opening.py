"""The one place where input files are opened: everything else sees seekable streams of bytes."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from manifests.errors import InputError, StoreError
from manifests.fingerprints import FileIdentity
from manifests.job_running import Storage
from manifests.store import is_s3

_CHUNK_BYTES = 1 << 20


@contextmanager
def open_input(uri: str, storage: Storage) -> Iterator[Any]:
    """An input file's bytes as a `pyarrow.NativeFile`; raises `InputError` with the reason."""
    try:
        with _opened(uri, storage) as file:
            yield file
    except StoreError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"input.uri {uri}: it cannot be read: {reason(error)}; fetch it again"
        ) from None


@contextmanager
def _opened(uri: str, storage: Storage) -> Iterator[Any]:
    if not is_s3(uri):
        with pa.OSFile(uri) as file:
            yield file
        return
    from manifests.store.s3.files import open_file

    with open_file(uri, storage, field="input.uri") as reader, pa.PythonFile(reader, "r") as file:
        yield file


def identify(uri: str, storage: Storage) -> FileIdentity:
    """Length and SHA-256 of an input file; reads it whole."""
    digest, size = hashlib.sha256(), 0
    with open_input(uri, storage) as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return FileIdentity(path=uri, bytes=size, sha256=digest.hexdigest())


def reason(error: Exception) -> str:
    """The first line of what a library says."""
    return next(iter(str(error).splitlines()), type(error).__name__)
