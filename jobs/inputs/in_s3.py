"""Which objects of S3 an input is."""

from collections.abc import Iterator
from typing import NamedTuple

from manifests.errors import InputError, MissingError
from manifests.job_running import Storage

FIELD = "input.uri"


class Found(NamedTuple):
    """One object: where it is, its name in ids and messages, and its length."""

    uri: str
    label: str
    bytes: int


def find_objects(uri: str, storage: Storage) -> Iterator[Found]:
    """The one object of a URI, or all that its glob matches, in order of name; or `InputError`."""
    from manifests.store.s3.files import fixed_folder, has_magic

    if uri.endswith("/"):
        raise InputError(
            f"input.uri {uri}: this is a folder; name its files with a glob, as in {uri}*.jsonl"
        )
    if not has_magic(uri):
        yield _one(uri, storage)
        return
    folder = fixed_folder(uri)
    for found in _matches(uri, storage):
        yield found._replace(label=found.uri.removeprefix(f"{folder}/"))


def _one(uri: str, storage: Storage) -> Found:
    from manifests.store.s3.files import look_up

    try:
        facts = look_up(uri, storage, field=FIELD)
    except MissingError:
        raise InputError(f"input.uri {uri}: there is no such object") from None
    return Found(uri=uri, label=uri.rpartition("/")[2], bytes=facts.bytes)


def _matches(pattern: str, storage: Storage) -> list[Found]:
    from manifests.store.s3.files import find_files

    files = [
        Found(uri=f"s3://{facts.path}", label="", bytes=facts.bytes)
        for facts in find_files(pattern, storage, field=FIELD)
    ]
    if not files:
        raise InputError(f"input.uri {pattern}: no object matches; write the glob as data/*.jsonl")
    return files
