"""What a row must hold, whatever file it came from: raw rows in, staged rows out.

A row in trouble becomes a staged row with `error_class` and `error_message`; it is never decoded
and ends as an error row of the output. Classes: `InvalidJson`, `InvalidCsv`, `InvalidUtf8`,
`MissingPrompt`, `NullPrompt`, `EmptyPrompt`, `WrongType`, `OutOfRange`, `LoneSurrogate`,
`MissingId`, `DuplicateId`, `UnsupportedRequest`, `UnsupportedParameter`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jobs.inputs.base import RawRow, RowTroubleError, Trouble
from jobs.inputs.carrying import carried_json
from jobs.inputs.content import Content, encodable
from jobs.inputs.ids import IdIndex
from jobs.inputs.parameters import Parameters, row_parameters
from jobs.inputs.row_form import RowForm
from manifests.errors import InputError
from manifests.staged import StagedRow


def stage_rows(
    raw_rows: Iterable[RawRow], *, form: RowForm, num_planned: int = 0
) -> Iterator[StagedRow]:
    """The staged form of `raw_rows`, numbered from 0.

    The first `num_planned` are those of a job that is planned: `InputError` if a later row has the
    id of one of them, since that is more likely an old row again than a new one.
    """
    with IdIndex() as ids:
        for row, raw in enumerate(raw_rows):
            yield _stage(raw, row=row, form=form, ids=ids, num_planned=num_planned)


def _stage(raw: RawRow, *, row: int, form: RowForm, ids: IdIndex, num_planned: int) -> StagedRow:
    row_id = _storable(f"{raw.file}:{raw.index}")
    values = raw.values
    if isinstance(values, Trouble):
        return _error_row(row, row_id=row_id, place=raw.place, trouble=values)
    carried = None if form.unpack else carried_json(form.carried(values))
    try:
        row_id = _row_id(values, form.columns.id, made_id=row_id)
        if form.columns.id is not None:
            _refuse_duplicate(row_id, raw=raw, row=row, ids=ids, num_planned=num_planned)
        if form.unpack is not None:
            values = dict(form.unpack(values))
            carried = carried_json(form.carried(values))
        content = form.content(values)
        parameters = row_parameters(values, form.columns, min_tokens=form.min_tokens)
    except RowTroubleError as error:
        return _error_row(
            row, row_id=row_id, place=raw.place, trouble=error.trouble, carried=carried
        )
    return _good_row(row, row_id=row_id, content=content, parameters=parameters, carried=carried)


def _good_row(
    row: int, *, row_id: str, content: Content, parameters: Parameters, carried: str | None
) -> StagedRow:
    return StagedRow(
        row=row,
        id=row_id,
        prompt=content.prompt,
        messages=content.messages,
        carried=carried,
        max_tokens=parameters.max_tokens,
        temperature=parameters.temperature,
        seed=parameters.seed,
    )


def _error_row(
    row: int, *, row_id: str, place: str, trouble: Trouble, carried: str | None = None
) -> StagedRow:
    return StagedRow(
        row=row,
        id=row_id,
        error_class=trouble.error_class,
        error_message=_storable(f"{place}: {trouble.message}"),
        carried=carried,
    )


def _storable(text: str) -> str:
    """`text` for UTF-8 storage, whatever it quotes."""
    return text.encode("utf-8", "replace").decode()


def _row_id(values: Mapping[str, Any], column: str | None, *, made_id: str) -> str:
    if column is None:
        return made_id
    value = values.get(column)
    if value is None or value == "":
        raise RowTroubleError("MissingId", f"column `{column}` holds no id; give the row one")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RowTroubleError("WrongType", f"column `{column}` must be text or a whole number")
    return encodable(str(value), name=f"column `{column}`")


def _refuse_duplicate(
    row_id: str, *, raw: RawRow, row: int, ids: IdIndex, num_planned: int
) -> None:
    first = ids.first_row(row_id, row)
    if first < num_planned <= row:
        raise InputError(
            f"{raw.place}: the appended row {row} has the id `{row_id}`, which belongs to row "
            f"{first} of the planned job (counted from 0); give it an id of its own, or remove it"
        )
    if first != row:
        raise RowTroubleError(
            "DuplicateId", f"id `{row_id}` belongs to row {first} (counted from 0)"
        )
