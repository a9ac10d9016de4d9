"""Files in S3 that a job reads and did not write: inputs and models, named by whole URIs."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from fsspec.utils import glob_translate

from manifests.job_running import Storage
from manifests.store.s3.client import S3Client
from manifests.store.s3.location import Location, parse_location
from manifests.store.s3.objects import ObjectFacts, S3Objects

# A name with these in it cannot be told from a glob; `?` is in no name, since it means a version.
_MAGIC = re.compile(r"[*\[]")


def has_magic(uri: str) -> bool:
    """Whether a URI is a glob."""
    return _MAGIC.search(uri) is not None


def fixed_folder(uri: str) -> str:
    """What a glob's matches have in common: the folder above its first part that is one."""
    magic = _MAGIC.search(uri)
    return (uri if magic is None else uri[: magic.start()]).rpartition("/")[0]


@lru_cache(maxsize=8)
def objects_for(storage: Storage) -> S3Objects:
    """One client for all that a process reads under the same settings."""
    return S3Objects(S3Client(storage))


def look_up(uri: str, storage: Storage, *, field: str) -> ObjectFacts:
    """Size and tag of one object; `MissingError` if it is not there."""
    location = parse_location(uri, field=field)
    return objects_for(storage).look_up(location.path, about=uri)


def find_files(uri: str, storage: Storage, *, field: str) -> list[ObjectFacts]:
    """The objects under a prefix (`s3://bucket/folder/`) or that match a glob, in order of name.

    `*` stays inside a part of the name, `**` crosses parts.
    """
    location = parse_location(uri, field=field)
    magic = _MAGIC.search(location.prefix)
    fixed = location.prefix if magic is None else location.prefix[: magic.start()]
    start = Location(bucket=location.bucket, prefix=f"{fixed}/" if magic is None else fixed)
    found = objects_for(storage).list(start, about=uri)
    files = [facts for facts in found if not facts.path.endswith("/")]
    if magic is not None:
        pattern = re.compile(glob_translate(location.path))
        files = [facts for facts in files if pattern.fullmatch(facts.path)]
    return sorted(files, key=lambda facts: facts.path)


@contextmanager
def open_file(uri: str, storage: Storage, *, field: str) -> Iterator[BinaryIO]:
    """A seekable reader that fetches ranges of one object."""
    location = parse_location(uri, field=field)
    with objects_for(storage).open_reader(location.path, about=uri) as reader:
        yield reader


def download(uri: str, target: Path, storage: Storage, *, field: str) -> None:
    """One object into a local file."""
    location = parse_location(uri, field=field)
    objects_for(storage).download(location.path, target, about=uri)
