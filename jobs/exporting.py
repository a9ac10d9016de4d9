"""`spotbatch export`: the rows that count, as one or a few plain Parquet files in a clean place.

The files are made from what the highest seal names, in input order. A place that holds anything
else is refused; an export that was interrupted goes on with the files that are missing.
`_SUCCESS.json` comes last.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.errors import JobError
from jobs.reading import OpenJob, require_seal
from manifests.columns import METADATA_JOB, output_schema
from manifests.committed import committed_table
from manifests.documents import encode, read_document
from manifests.errors import DamagedError
from manifests.export import (
    SUCCESS_KEY,
    Export,
    ExportedFile,
    ExportedPart,
    export_parts,
    seal_digest,
)
from manifests.hashing import sha256_file
from manifests.protocol import create
from manifests.records import Seal
from manifests.store.base import Store

ROW_GROUP_ROWS = 16_384  # small shards share a row group


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """What an export made, or found to be there."""

    export: Export
    num_written: int
    """Files that this call made; the others were there."""


def export_job(
    job: OpenJob, destination: Store, *, rows_per_file: int | None = None
) -> ExportResult:
    """Export the complete job; raises `JobError` where the destination is not clean.

    `rows_per_file`: a file ends with the shard that reaches this number of output rows; None makes
    one file.
    """
    refuse_inside(job.store.uri, destination.uri)
    seal = require_seal(job)
    parts = export_parts(seal, rows_per_file=rows_per_file)
    keys = [part.key for part in parts]
    present = present_keys(destination, keys=keys)
    if SUCCESS_KEY in present:
        return finished_export(destination, seal=seal, keys=keys)
    destination.probe()
    files = [
        _export_part(job, destination, part=part, is_there=part.key in present) for part in parts
    ]
    return seal_export(job, destination, seal=seal, files=files, num_present=len(present))


def seal_export(
    job: OpenJob, destination: Store, *, seal: Seal, files: Sequence[ExportedFile], num_present: int
) -> ExportResult:
    """Put `_SUCCESS.json` behind the files, unless somebody else was faster."""
    export = Export(
        job_id=job.plan.job_id,
        revision=seal.revision,
        seal_sha256=seal_digest(seal),
        rows=seal.samples,
        ok=seal.ok,
        errors=seal.errors,
        files=tuple(files),
    )
    if not create(lambda: destination.put_if_absent(SUCCESS_KEY, encode(export))):
        return finished_export(destination, seal=seal, keys=[file.key for file in files])
    return ExportResult(export=export, num_written=len(files) - num_present)


def refuse_inside(job_uri: str, destination_uri: str) -> None:
    """Raise `JobError` for a destination in the job's own directory."""
    if f"{destination_uri}/".startswith(f"{job_uri}/"):
        raise JobError(
            f"{destination_uri} lies in the job's own directory; export to a place outside of it"
        )


def present_keys(destination: Store, *, keys: Sequence[str]) -> set[str]:
    """What is there already of an export to `keys`; `JobError` if there is anything else."""
    present = set(destination.list(""))
    foreign = sorted(present - set(keys) - {SUCCESS_KEY})
    if foreign:
        raise JobError(
            f"{destination.uri} holds {foreign[0]} and {len(foreign) - 1} more objects that are "
            "not of this export; nothing is overwritten, so give an empty place"
        )
    return present


def finished_export(destination: Store, *, seal: Seal, keys: Sequence[str]) -> ExportResult:
    """The export that is there; `JobError` if it is another one."""
    export = read_document(destination, Export, SUCCESS_KEY)
    if (export.seal_sha256, [f.key for f in export.files]) != (
        seal_digest(seal),
        list(keys),
    ):
        raise JobError(
            f"{destination.uri} holds an export of revision {export.revision} of job "
            f"{export.job_id}; nothing is overwritten, so give an empty place"
        )
    return ExportResult(export=export, num_written=0)


def _export_part(
    job: OpenJob, destination: Store, *, part: ExportedPart, is_there: bool
) -> ExportedFile:
    if not is_there:
        with tempfile.TemporaryDirectory(prefix="spotbatch-export-") as folder:
            path = Path(folder) / part.key
            _write(path, job=job, part=part)
            file = _checked(path, part=part)
            if create(lambda: destination.put_file_if_absent(part.key, path)):
                return file
    with destination.open_local(part.key) as path:  # of an earlier or a concurrent export
        return _checked(path, part=part)


def _checked(path: Path, *, part: ExportedPart) -> ExportedFile:
    """A whole file has a footer, and that says how many rows there are."""
    try:
        rows = pq.read_metadata(path).num_rows
    except (OSError, pa.ArrowException) as error:
        raise DamagedError(f"{part.key}: it cannot be read ({error}); delete it") from error
    if rows != part.rows:
        raise DamagedError(f"{part.key}: it has {rows} rows, not {part.rows}; delete it")
    size = path.stat().st_size
    return ExportedFile(key=part.key, rows=rows, bytes=size, sha256=sha256_file(path))


def _write(path: Path, *, job: OpenJob, part: ExportedPart) -> None:
    schema = output_schema(job.plan.job.output.trace, work=job.plan.job.work)
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for table in _row_groups(committed_table(job.store, job.plan, s) for s in part.shards):
            writer.write_table(table, row_group_size=max(1, table.num_rows))
        writer.add_key_value_metadata({METADATA_JOB: job.plan.job_id})


def _row_groups(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Tables joined until they are worth a row group."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(each.num_rows for each in waiting) >= ROW_GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)
