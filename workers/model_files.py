"""Models as local directories with checked contents, wherever a job says they are.

A worker trusts no copy of a model: a directory on its node is hashed (once per node and version of
each file), one in S3 is fetched into the node's cache; both are compared with what was planned.
Planning knows no hashes yet: it fetches what is listed and learns them.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from manifests.errors import MissingError
from manifests.fingerprints import FileIdentity
from manifests.hashing import sha256_file
from manifests.job import JobSpec
from manifests.job_running import Storage
from manifests.store.base import S3_SCHEME, is_s3
from workers.errors import ModelFilesError
from workers.model_cache import (
    GIB,
    CachedFile,
    Fetch,
    ModelCache,
    files_from_text,
    files_to_text,
)

# Everything else in a model directory is never read: other weights, code, pictures.
_SUFFIXES = (".json", ".jinja", ".safetensors", ".txt")


def open_cache(storage: Storage) -> ModelCache:
    """This node's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(storage.cache_path or f"{home}/spotbatch").expanduser()
    return ModelCache(folder, limit_bytes=int(storage.cache_gib * GIB))


def checked_models(
    job: JobSpec, *, target: Sequence[FileIdentity], drafter: Sequence[FileIdentity]
) -> JobSpec:
    """The job with target and drafter as directories of this node that hold the planned files.

    Raises `ModelFilesError` that names the file which is missing or has other contents.
    """
    target_path = _checked(job.target.path, target, storage=job.storage, field="target.path")
    update: dict[str, object] = {"target": job.target.model_copy(update={"path": target_path})}
    if job.drafter.path is not None and drafter:
        path = _checked(job.drafter.path, drafter, storage=job.storage, field="drafter.path")
        update["drafter"] = job.drafter.model_copy(update={"path": path})
    return job.model_copy(update=update)


def fetched_models(job: JobSpec) -> JobSpec:
    """The job with target and drafter as local directories, whatever S3 holds now."""
    target = _fetched(job.target.path, storage=job.storage, field="target.path")
    drafter = job.drafter.path
    if drafter is not None:
        drafter = _fetched(drafter, storage=job.storage, field="drafter.path")
    return job.model_copy(
        update={
            "target": job.target.model_copy(update={"path": target}),
            "drafter": job.drafter.model_copy(update={"path": drafter}),
        }
    )


def _checked(where: str, planned: Sequence[FileIdentity], *, storage: Storage, field: str) -> str:
    cache = open_cache(storage)
    if not is_s3(where):
        with cache.locked():
            _compare_local(Path(where), planned, cache=cache, field=field)
        return where
    files = [CachedFile(name=_name(file), bytes=file.bytes, sha256=file.sha256) for file in planned]
    return str(cache.directory(files, fetch=_fetch_from(where, storage=storage, field=field)))


def _compare_local(
    directory: Path, planned: Iterable[FileIdentity], *, cache: ModelCache, field: str
) -> None:
    for file in planned:
        path = directory / _name(file)
        if not path.is_file():
            raise ModelFilesError(
                f"{field}: {path} is not on this node; put models where every node finds them "
                "under the same path, or into S3"
            )
        if _known_sha256(path, cache=cache) != file.sha256:
            raise ModelFilesError(
                f"{field}: {path} is not the file that the job was planned with; restore it, or "
                "plan a new job for the changed model"
            )


def _known_sha256(path: Path, *, cache: ModelCache) -> str:
    facts = path.stat()
    version = (
        path,
        facts.st_dev,
        facts.st_ino,
        facts.st_size,
        facts.st_mtime_ns,
        facts.st_ctime_ns,
    )
    known = cache.note("sha256 of a file", *version)
    if known is None:
        known = sha256_file(path)
        cache.take_note("sha256 of a file", *version, text=known)
    return known


def _fetched(where: str, *, storage: Storage, field: str) -> str:
    if not is_s3(where):
        return where
    from manifests.store.s3.files import find_files

    where = where.rstrip("/")
    listed = {
        facts.path.rpartition("/")[2]: facts
        for facts in find_files(where, storage, field=field)
        if facts.path.rpartition("/")[0] == where.removeprefix(S3_SCHEME)
        and facts.path.endswith(_SUFFIXES)
    }
    if not listed:
        raise ModelFilesError(f"{field}: {where} holds no model files; correct the path")
    cache, fetch = open_cache(storage), _fetch_from(where, storage=storage, field=field)
    versions = [(name, facts.bytes, facts.etag) for name, facts in sorted(listed.items())]
    known = cache.note("files of a listing", where, storage.endpoint, versions)
    if known is None:
        num_bytes = sum(facts.bytes for facts in listed.values())
        files = cache.adopt(sorted(listed), num_bytes=num_bytes, fetch=fetch)
        known = files_to_text(files)
        cache.take_note("files of a listing", where, storage.endpoint, versions, text=known)
    return str(cache.directory(files_from_text(known), fetch=fetch))


def _fetch_from(where: str, *, storage: Storage, field: str) -> Fetch:
    from manifests.store.s3.files import download

    def fetch(name: str, target: Path) -> None:
        uri = f"{where.rstrip('/')}/{name}"
        try:
            download(uri, target, storage, field=field)
        except MissingError as error:
            raise ModelFilesError(
                f"{field}: {uri} is not there, and the job was planned with it; restore it"
            ) from error

    return fetch


def _name(file: FileIdentity) -> str:
    name = file.path.rpartition("/")[2]
    if name in ("", ".", ".."):
        raise ModelFilesError(f"the plan names {file.path!r} as a model file; plan the job again")
    return name
