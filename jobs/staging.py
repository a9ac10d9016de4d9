"""Staging: the input, normalised once, as local Parquet files with one row group per shard.

Rows stream through; in memory are the rows of one shard and the digests of the ids. Nothing is
stored in the job before all of it was read, so an input that turns out unusable leaves nothing
behind.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq

from jobs.inputs.reading import InputReader
from manifests.errors import DamagedError, InputError
from manifests.fingerprints import FileIdentity
from manifests.hashing import sha256_file
from manifests.job import JobSpec
from manifests.keys import staged_key
from manifests.plan import Plan, ShardPlan, shard_seed
from manifests.protocol import create
from manifests.staged import (
    STAGED_SCHEMA,
    STAGED_WRITE_OPTIONS,
    RowsDigest,
    StagedRow,
    staged_table,
)
from manifests.store.base import Store

PART_CHARACTERS = 256 << 20
# Whoever reads one row group reads the footer first, which lists all of them.
PART_SHARDS = 1024
MAX_SHARDS = 200_000
# Trouble that says more about the job file or the file than about a row, if every row has it.
_WHOLE_FILE = frozenset(
    {"InvalidJson", "InvalidCsv", "InvalidUtf8", "MissingId", "MissingPrompt"}
    | {"UnsupportedRequest", "UnsupportedParameter"}
)
# Reading a prompt costs little beside writing an answer; this only orders the shards.
_COST_PER_CHARACTER = 1 / 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedPart:
    """One staged file on local disk and the object that it will become."""

    path: Path
    identity: FileIdentity


@dataclass(slots=True, kw_only=True)
class StagedInput:
    """The staged files and the shard table over them."""

    parts: list[StagedPart] = field(default_factory=list)
    shards: list[ShardPlan] = field(default_factory=list)
    rows: int = 0
    dropped: int = 0
    """Rows that `input.filter` left out."""
    max_tokens: int = 0
    """Output budgets of the rows that can be decoded, one sample each."""
    digest: RowsDigest = field(default_factory=RowsDigest)
    trouble: Counter[str] = field(default_factory=Counter)
    """Rows that cannot be decoded, by error class."""
    first_trouble: str = ""
    first_row: StagedRow | None = None


def stage_input(job: JobSpec, folder: Path) -> StagedInput:
    """Read the whole input into staged files under `folder`; `InputError` if it is unusable."""
    reader = InputReader(job)
    staged = StagedInput()
    _stage(staged, _shards(reader.rows(), job.shards.rows), job=job, folder=folder)
    staged.dropped = reader.num_dropped
    _check(staged, job)
    return staged


def stage_appended(
    job: JobSpec,
    rows: Iterable[StagedRow],
    folder: Path,
    *,
    plan: Plan,
    digest: RowsDigest,
    revision: int,
) -> StagedInput:
    """The same with rows that come behind those of a plan, which `digest` is over.

    Shards and parts are numbered from 0, and the parts named for `revision`. The first shard ends
    where one of a plan over all rows would end.
    """
    staged = StagedInput(digest=digest)
    size = job.shards.rows
    shards = _shards(rows, size, first_size=size - plan.rows % size)
    num_shards = len(plan.shards)
    _stage(staged, shards, job=job, folder=folder, num_shards=num_shards, revision=revision)
    _check(staged, job)
    return staged


def _stage(
    staged: StagedInput,
    shards: Iterator[list[StagedRow]],
    *,
    job: JobSpec,
    folder: Path,
    num_shards: int = 0,
    revision: int = 0,
) -> None:
    few = _few_enough(shards, rows=job.shards.rows, num_shards=num_shards)
    for part, part_shards in enumerate(_parts(few)):
        path = folder / f"{part:08d}.parquet"
        groups = _write_part(staged, part_shards, job=job, path=path)
        sha256 = sha256_file(path)
        key = staged_key(revision, part, sha256=sha256)
        identity = FileIdentity(path=key, bytes=path.stat().st_size, sha256=sha256)
        staged.parts.append(StagedPart(path=path, identity=identity))
        staged.shards += [group.model_copy(update={"part": key}) for group in groups]


def _shards(
    rows: Iterable[StagedRow], size: int, *, first_size: int | None = None
) -> Iterator[list[StagedRow]]:
    iterator = iter(rows)
    if first_size is not None:
        yield list(islice(iterator, first_size))
    while shard := list(islice(iterator, size)):
        yield shard


def _few_enough(
    shards: Iterator[list[StagedRow]], *, rows: int, num_shards: int
) -> Iterator[list[StagedRow]]:
    """The shards, as long as a driver can hold the table of them in memory."""
    for index, shard in enumerate(shards, start=num_shards):
        if index == MAX_SHARDS:
            raise InputError(
                f"shards.rows {rows}: the input makes more than {MAX_SHARDS} shards; raise "
                "shards.rows, or split the input over several jobs"
            )
        yield shard


def _parts(shards: Iterator[list[StagedRow]]) -> Iterator[Iterator[list[StagedRow]]]:
    """Consecutive shards up to the limits of a part; each part is consumed before the next."""
    for first in shards:
        yield _one_part(first, shards)


def _one_part(
    first: list[StagedRow], shards: Iterator[list[StagedRow]]
) -> Iterator[list[StagedRow]]:
    size, count = sum(map(_characters, first)), 1
    yield first
    while size < PART_CHARACTERS and count < PART_SHARDS:
        shard = next(shards, None)
        if shard is None:
            return
        size, count = size + sum(map(_characters, shard)), count + 1
        yield shard


def _characters(row: StagedRow) -> int:
    return sum(len(text or "") for text in (row.prompt, row.messages, row.carried))


def _write_part(
    staged: StagedInput, shards: Iterator[list[StagedRow]], *, job: JobSpec, path: Path
) -> list[ShardPlan]:
    """Write a part; its shards, with its local name, since its key is made from its bytes."""
    groups: list[ShardPlan] = []
    with pq.ParquetWriter(path, STAGED_SCHEMA, **STAGED_WRITE_OPTIONS) as writer:
        for rows in shards:
            writer.write_table(staged_table(rows), row_group_size=len(rows))
            shard = ShardPlan(
                shard=len(staged.shards) + len(groups),
                rows=len(rows),
                seed=shard_seed(job.seed.value, len(staged.shards) + len(groups)),
                expected_cost=sum(_expected_cost(row, job) for row in rows),
                first_row=rows[0].row,
                row_group=len(groups),
                part=path.name,
            )
            groups.append(shard)
            _count(staged, rows, job=job)
    return groups


def _expected_cost(row: StagedRow, job: JobSpec) -> float:
    """About the tokens to be made; an error row costs nothing."""
    if row.error_class is not None:
        return 0.0
    prompt = len(row.prompt or row.messages or "")
    return float(job.sampling.n * (_budget(row, job) + prompt * _COST_PER_CHARACTER))


def _budget(row: StagedRow, job: JobSpec) -> int:
    return row.max_tokens or job.decode.max_tokens


def _count(staged: StagedInput, rows: Sequence[StagedRow], *, job: JobSpec) -> None:
    staged.rows += len(rows)
    staged.first_row = staged.first_row or rows[0]
    for row in rows:
        staged.digest.add(row)
        if row.error_class is None:
            staged.max_tokens += _budget(row, job)
        else:
            staged.trouble[row.error_class] += 1
            staged.first_trouble = staged.first_trouble or f"{row.error_message}"


def _check(staged: StagedInput, job: JobSpec) -> None:
    where = f"input.uri {', '.join(job.input.uris)}"
    if staged.rows == 0 and staged.dropped:
        raise InputError(
            f"input.filter `{job.input.filter}` is true for none of the {staged.dropped} rows; "
            "change it"
        )
    if staged.rows == 0:
        raise InputError(f"{where}: there is no row in it; it needs at least one")
    if sum(staged.trouble[kind] for kind in _WHOLE_FILE) == staged.rows:
        raise InputError(
            f"{where}: no row can be used; the first, {staged.first_trouble}; mend the rows, or "
            "set the input.format that they have"
        )


def publish_staged(store: Store, parts: Iterable[StagedPart]) -> None:
    """Put files whose names say their bytes, or find them there."""
    for part in parts:
        key = part.identity.path
        if create(partial(store.put_file_if_absent, key, part.path)):
            continue
        with store.open_local(key) as there:
            if sha256_file(there) != part.identity.sha256:
                raise DamagedError(f"{key}: it is there with other bytes; delete it, and try again")
