"""The rows of a whole input: file after file, filtered, limited, and normalised."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import pyarrow as pa

from jobs.inputs.base import RawRow, Trouble, Wanted, nearest
from jobs.inputs.csv_text import read_csv
from jobs.inputs.files import InputFile, find_files
from jobs.inputs.filter import parse_filter
from jobs.inputs.jsonl import read_jsonl
from jobs.inputs.opening import open_input
from jobs.inputs.parquet import read_parquet
from jobs.inputs.row_form import RowForm, row_form, wanted_columns
from jobs.inputs.rows import stage_rows
from jobs.inputs.saved_dataset import read_saved_dataset
from manifests.errors import InputError
from manifests.job import JobSpec
from manifests.staged import StagedRow


class InputReader:
    """A job's input, to be read once from its beginning to its end."""

    def __init__(self, job: JobSpec, files: Sequence[InputFile] | None = None) -> None:
        """`files` stand in for those that `input.uri` names.

        Raises:
            InputError: a file is missing or of no use.
            JobFileError: the template or the filter cannot be read.
        """
        self.files = tuple(find_files(job.input, job.storage) if files is None else files)
        self._limit = job.input.limit
        self._filter = None if job.input.filter is None else parse_filter(job.input.filter)
        self._form: RowForm = row_form(job)
        columns = frozenset[str]() if self._filter is None else self._filter.columns
        self._wanted = wanted_columns(job, self._form, filtered=columns)

    @property
    def num_dropped(self) -> int:
        """Rows that the filter has dropped so far."""
        return 0 if self._filter is None else self._filter.num_dropped

    def rows(self, *, num_planned: int = 0) -> Iterator[StagedRow]:
        """The rows in their staged form, in order; so many of them are planned already."""
        raw = _all_rows(self.files, self._wanted)
        kept: Iterable[RawRow] = raw if self._filter is None else self._filter.keep(raw)
        return stage_rows(islice(kept, self._limit), form=self._form, num_planned=num_planned)


def read_rows(job: JobSpec) -> Iterator[StagedRow]:
    """The rows of a job, normalised as planning does."""
    return InputReader(job).rows()


def _all_rows(files: Iterable[InputFile], wanted: Wanted) -> Iterator[RawRow]:
    """Every row; at their end, `InputError` if a required column was in none of them."""
    unseen = {column: setting for setting, column in wanted.required}
    names: dict[str, None] = {}
    for file in files:
        for raw in read_file(file, wanted):
            if unseen and not isinstance(raw.values, Trouble):
                names |= dict.fromkeys(raw.values)
                unseen = {name: unseen[name] for name in unseen.keys() - raw.values.keys()}
            yield raw
    if unseen and names:
        column = next(iter(unseen))
        raise InputError(
            f"{unseen[column]}: no row has a column `{column}`; {nearest(column, names)}"
        )


def read_file(file: InputFile, wanted: Wanted) -> Iterator[RawRow]:
    """The rows of one file."""
    with open_input(file.uri, file.storage) as stream:
        if file.compression is not None:
            stream = pa.CompressedInputStream(stream, file.compression)
        if file.format == "parquet":
            yield from read_parquet(stream, file.label, wanted)
        elif file.format == "arrow":
            yield from read_saved_dataset(stream, file.label, wanted)
        elif file.format == "jsonl":
            yield from read_jsonl(stream, file.label)
        else:
            yield from read_csv(stream, file.label, wanted, delimiter=file.field_delimiter)
