"""The rows of a data file against the staged rows and the commit record."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from manifests.hashing import row_ids_digest
from manifests.plan import Plan, sample_key
from manifests.records import CommitRecord
from manifests.staged import StagedRow

_TOKEN_TRACE = ("commit_step", "log_probability", "confidence")
_COMMIT_TRACE = ("commit_position", "commit_token", "commit_transition")
_FINISH_REASONS = ("stop", "length")


class Place(NamedTuple):
    """What identifies an output row; these are in input order, samples ascending."""

    row: int
    id: str
    sample: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """Rows of a revised file that were not decoded again."""

    chosen: frozenset[int]
    """Indices of the rows that were."""
    parent: pa.Table | None
    """The file that the others come from; None if it has been collected since."""
    attempts: frozenset[str]
    """Earlier attempts whose rows can be among them."""


def row_problems(
    table: pa.Table,
    *,
    record: CommitRecord,
    plan: Plan,
    rows: Sequence[StagedRow],
    copied: Copied | None = None,
) -> Iterator[str]:
    """Everything that is wrong with the rows of a file whose schema is right."""
    values = table.to_pylist()
    expected = _expected_places(record, plan=plan, rows=rows)
    found = [Place(v["row"], v["id"], v["sample"], v["seed"]) for v in values]
    if found != expected:
        yield _first_difference(found, expected=expected)
        return
    yield from _total_problems(values, record=record)
    parents = _parents(copied, num_values=len(values))
    for index, value in enumerate(values):
        staged = rows[value["row"]]
        problems = [
            *_value_problems(value, record=record, staged=staged),
            *_origin_problems(value, record=record, copied=copied, parent=parents[index]),
        ]
        for problem in problems:
            yield f"output row {index} (id {value['id']!r}, sample {value['sample']}): {problem}"


def _expected_places(record: CommitRecord, *, plan: Plan, rows: Sequence[StagedRow]) -> list[Place]:
    shard = plan.shards[record.shard]
    return [
        Place(index, row.id, sample, sample_key(plan, shard, index, row, sample))
        for index, row in enumerate(rows)
        for sample in range(plan.job.sampling.n)
    ]


def _first_difference(found: Sequence[Place], *, expected: Sequence[Place]) -> str:
    if len(found) != len(expected):
        return f"it has {len(found)} rows, not {len(expected)}"
    index = next(i for i, place in enumerate(found) if place != expected[i])
    return f"output row {index} is {found[index]}, not {expected[index]}"


def _total_problems(values: Sequence[dict[str, Any]], *, record: CommitRecord) -> Iterator[str]:
    errors = sum(value["error_class"] is not None for value in values)
    if (len(values) - errors, errors) != (record.ok, record.errors):
        yield (
            f"it has {len(values) - errors} outputs and {errors} errors, the commit record says "
            f"{record.ok} and {record.errors}"
        )
    if row_ids_digest((value["id"], value["sample"]) for value in values) != record.row_ids_sha256:
        yield "its row ids are not those of the commit record"


def _parents(copied: Copied | None, *, num_values: int) -> Sequence[dict[str, Any] | None]:
    """The row that each row would be a copy of; files of one shard have the same rows in order."""
    if copied is None or copied.parent is None or copied.parent.num_rows != num_values:
        return [None] * num_values
    rows: list[dict[str, Any] | None] = copied.parent.to_pylist()
    return rows


def _origin_problems(
    value: dict[str, Any],
    *,
    record: CommitRecord,
    copied: Copied | None,
    parent: dict[str, Any] | None,
) -> Iterator[str]:
    """Whether the row comes from where its revision says."""
    attempt = value["attempt"]
    if copied is None or value["row"] in copied.chosen:
        if attempt != record.attempt:
            yield f"attempt is {attempt!r}, not {record.attempt!r}"
    elif attempt not in copied.attempts:
        yield f"attempt is {attempt!r}, and no earlier record of the shard is of that attempt"
    elif parent is not None and value != parent:
        names = [name for name in value if value[name] != parent[name]]
        yield f"it was not chosen, but {', '.join(names)} differ from the row it was copied from"


def _value_problems(
    value: dict[str, Any], *, record: CommitRecord, staged: StagedRow
) -> Iterator[str]:
    if value["shard"] != record.shard:
        yield f"shard is {value['shard']!r}, not {record.shard!r}"
    if value["carried"] != staged.carried:
        yield "its carried columns are not those of the input"
    if value["tokens"] != len(value["token_ids"] or ()):
        yield f"tokens is {value['tokens']}, but there are {len(value['token_ids'] or ())} ids"
    if value["error_class"] is None:
        yield from _output_problems(value, staged=staged)
    elif value["text"] is not None or value["token_ids"] is not None:
        yield "it is an error, and yet it has an output"


def _output_problems(value: dict[str, Any], *, staged: StagedRow) -> Iterator[str]:
    if staged.error_class is not None:
        yield f"it has an output, although planning found {staged.error_class}"
    if value["text"] is None or value["token_ids"] is None:
        yield "it has neither an output nor an error"
    elif value["finish_reason"] not in _FINISH_REASONS:
        yield f"finish_reason is {value['finish_reason']!r}"
    if _lengths(value, _TOKEN_TRACE) - {value["tokens"]}:
        yield f"{', '.join(_TOKEN_TRACE)} are not aligned with the token ids"
    if len(_lengths(value, _COMMIT_TRACE)) > 1:
        yield f"{', '.join(_COMMIT_TRACE)} differ in length"


def _lengths(value: dict[str, Any], names: Sequence[str]) -> set[int]:
    lists = [value.get(name) for name in names]
    return {len(entries) for entries in lists if entries is not None}
