"""`spotbatch export --format openai`: the rows that count as OpenAI batch output, in a clean place.

As with Parquet, nothing is overwritten, an interrupted export goes on, and `_SUCCESS.json` comes
last. The bytes of both files depend on job and seal alone, so that what is there can be checked.
"""

import tempfile
from pathlib import Path

from jobs.exporting import (
    ExportResult,
    finished_export,
    present_keys,
    refuse_inside,
    seal_export,
)
from jobs.outputs.openai_batch import Counts, write_openai_batch
from jobs.reading import OpenJob, require_seal
from manifests.committed import committed_table
from manifests.errors import DamagedError
from manifests.export import SUCCESS_KEY, ExportedFile, openai_keys
from manifests.hashing import sha256_file
from manifests.protocol import create
from manifests.records import Seal
from manifests.store.base import Store


def export_openai(job: OpenJob, destination: Store) -> ExportResult:
    """Export the complete job as two JSONL files: answers, and errors.

    Raises `JobError` where the destination is not clean, and `DamagedError` where a file of an
    earlier export is there with other bytes.
    """
    refuse_inside(job.store.uri, destination.uri)
    seal = require_seal(job)
    keys = openai_keys(seal)
    present = present_keys(destination, keys=keys)
    if SUCCESS_KEY in present:
        return finished_export(destination, seal=seal, keys=keys)
    destination.probe()
    with tempfile.TemporaryDirectory(prefix="spotbatch-export-") as folder:
        paths = [Path(folder) / key for key in keys]
        counts = _write(paths[0], paths[1], job=job, seal=seal)
        files = [
            _publish(destination, path, lines=lines)
            for path, lines in zip(paths, (counts.responses, counts.errors), strict=True)
        ]
    return seal_export(job, destination, seal=seal, files=files, num_present=len(present))


def _write(output: Path, errors: Path, *, job: OpenJob, seal: Seal) -> Counts:
    tables = (committed_table(job.store, job.plan, shard) for shard in seal.shards)
    with output.open("w", encoding="utf-8") as answers, errors.open("w", encoding="utf-8") as rest:
        return write_openai_batch(tables, job.plan, output=answers, errors=rest)


def _publish(destination: Store, path: Path, *, lines: int) -> ExportedFile:
    key, digest = path.name, sha256_file(path)
    if not create(lambda: destination.put_file_if_absent(key, path)):
        with destination.open_local(key) as stored:
            if sha256_file(stored) != digest:
                raise DamagedError(f"{key}: it has other bytes than this export; delete it")
    return ExportedFile(key=key, rows=lines, bytes=path.stat().st_size, sha256=digest)
