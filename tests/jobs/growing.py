"""Inputs of jobs that grow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.extending import Extended, extend_job
from jobs.reading import OpenJob, open_job
from jobs.resuming import stored_and_job
from manifests.errors import MissingError
from tests.jobs.support import finish, prompts, write_rows

PLANNED, ALL = 5, 9  # rows; shards have two


def append(folder: Path, rows: Sequence[object]) -> None:
    """Rows behind those of the job's input."""
    more = write_rows(folder / "more", rows)
    with (folder / "prompts.jsonl").open("a") as file:
        file.write(more.read_text())


def extend(job: OpenJob, **options: Any) -> Extended:
    """As the command does it, by the place of the job."""
    stored, spec = stored_and_job(job.store.uri)
    return extend_job(stored, spec, **options)


def extended(job: OpenJob, folder: Path, *, rows: Sequence[object] = ()) -> OpenJob:
    """The job with rows appended and decoded."""
    append(folder, rows or prompts(ALL)[PLANNED:])
    assert extend(job).open
    again = open_job(job.store.uri)
    finish(again)
    return again


class BlindStore:
    """Does not see a decision until it tries to make one itself."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._sees = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get(self, key: str) -> bytes:
        if key.startswith("revisions/") and not self._sees:
            raise MissingError(key)
        data: bytes = self._inner.get(key)
        return data

    def put_if_absent(self, key: str, data: bytes) -> None:
        self._sees = True
        self._inner.put_if_absent(key, data)
