"""Finding the jobs below a directory or prefix."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jobs.errors import JobError, NoJobError
from manifests.keys import plan_key
from manifests.store import open_store

MAX_DEPTH = 4
"""Folders below the root that are looked into; a job's own folders are not."""


def find_jobs(root: str) -> list[str]:
    """The URIs of all jobs at or below `root`, sorted; `NoJobError` if the root is not there."""
    parts = urlsplit(root)
    if "://" not in root or parts.scheme == "file":
        path = Path(unquote(parts.path) if "://" in root else root).expanduser().absolute()
        if not path.is_dir():
            raise NoJobError(f"{root}: there is no such directory; give one that holds jobs")
        return sorted(str(found) for found in _below(path, depth=0))
    return sorted(_in_store(root.rstrip("/")))


def _below(folder: Path, *, depth: int) -> Iterator[Path]:
    if (folder / plan_key()).is_file():
        yield folder
    elif depth < MAX_DEPTH:
        with os.scandir(folder) as entries:
            folders = [e for e in entries if e.is_dir(follow_symlinks=False) and e.name[0] != "."]
        for entry in folders:
            yield from _below(Path(entry.path), depth=depth + 1)


def _in_store(root: str) -> Iterator[str]:
    """By a listing of everything below the root, since object stores have no folders."""
    if not urlsplit(root).netloc:
        raise JobError(f"{root}: name the bucket, as in s3://bucket/prefix")
    for key in open_store(root).list(""):
        folder, _, name = key.rpartition("/")
        if name == plan_key():
            yield f"{root}/{folder}" if folder else root
