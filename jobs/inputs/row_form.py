"""Where a job's rows have what: the columns, template and carried columns of a job, resolved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from jobs.inputs.base import Wanted
from jobs.inputs.content import (
    Content,
    column_text,
    column_value,
    message_content,
    text_content,
)
from jobs.inputs.openai_batch import OPENAI_COLUMNS, unpack_request
from jobs.inputs.template import Template, parse_template
from manifests.job import JobSpec
from manifests.job_input import Columns

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowForm:
    """What is taken from a row."""

    columns: Columns
    template: Template | None = None
    system: str | None = None
    carry: Literal["all", "none"] | tuple[str, ...] = "all"
    min_tokens: int = 0
    unpack: Callable[[Row], Row] | None = None
    """Makes the columns of a row that does not have them as such."""

    @property
    def prompt_column(self) -> str | None:
        """The column with the text, if neither messages nor a template take its place."""
        if self.template is not None or self.columns.messages is not None:
            return None
        return self.columns.prompt or "prompt"

    def content(self, values: Row) -> Content:
        """Prompt or messages of a row."""
        columns = self.columns
        if self.template is not None:
            text = self.template.fill(values)
            return text_content(text, name="the filled prompt.template", system=self.system)
        if columns.messages is not None:
            value = column_value(values, columns.messages)
            name = f"column `{columns.messages}`"
            return message_content(value, name=name, system=self.system)
        column = self.prompt_column
        assert column is not None, "there is no source of prompts"
        text = column_text(values, column)
        return text_content(text, name=f"column `{column}`", system=self.system)

    def carried(self, values: Row) -> dict[str, Any]:
        """The columns that are carried into the output."""
        if self.carry == "none":
            return {}
        if self.carry != "all":
            return {name: values.get(name) for name in self.carry}
        used = {*self.columns.named.values(), self.prompt_column}
        return {name: value for name, value in values.items() if name not in used}


def row_form(job: JobSpec) -> RowForm:
    """The form of a job's rows; `JobFileError` if its template cannot be read."""
    template = job.prompt.template
    is_openai = job.input.format == "openai"
    return RowForm(
        columns=OPENAI_COLUMNS if is_openai else job.input.columns,
        template=None if template is None else parse_template(template),
        system=job.prompt.system,
        carry=job.output.carry,
        min_tokens=job.decode.min_tokens,
        unpack=partial(unpack_request, job=job) if is_openai else None,
    )


def wanted_columns(job: JobSpec, form: RowForm, *, filtered: frozenset[str]) -> Wanted:
    """The columns that a file must have, and those that are read at all."""
    required = [
        (f"input.columns.{name}", column)
        for name, column in form.columns.named.items()
        if form.unpack is None
    ]
    if form.prompt_column is not None and form.columns.prompt is None:
        required.append(("input.columns.prompt", form.prompt_column))
    if form.template is not None:
        required += [("prompt.template", column) for column in dict.fromkeys(form.template.columns)]
    if isinstance(form.carry, tuple) and form.unpack is None:
        required += [("output.carry", column) for column in form.carry]
    required += [("input.filter", column) for column in sorted(filtered)]
    everything = form.carry == "all" or form.unpack is not None
    return Wanted(
        required=tuple(required),
        text="input.columns.prompt" if form.prompt_column is not None else None,
        only=None if everything else frozenset(column for _, column in required),
    )
