"""Prompt templates: text with columns as `{column}`; `{{` and `}}` are braces.

What stands between braces is a column's name and nothing else: no attributes, indices, formats or
code, so that a template cannot do anything but insert text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.inputs.base import RowTroubleError
from manifests.errors import JobFileError

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A parsed template: texts, and the column behind each text but the last."""

    texts: tuple[str, ...]
    columns: tuple[str, ...]

    def fill(self, values: Mapping[str, Any]) -> str:
        """The template with a row's values; `RowTroubleError` where one cannot be inserted."""
        parts = [self.texts[0]]
        for column, text in zip(self.columns, self.texts[1:], strict=True):
            parts += [_text(values, column), text]
        return "".join(parts)


def parse_template(text: str) -> Template:
    """The parts of a template; `JobFileError` where its braces do not match or name nothing."""
    texts, columns, end = [""], [], 0
    for token in _TOKEN.finditer(text):
        texts[-1] += text[end : token.start()]
        end = token.end()
        column = token[1]
        if token[0] in ("{{", "}}"):
            texts[-1] += token[0][0]
        elif column is None:
            raise JobFileError(
                f"prompt.template: a lone {token[0]} at character {token.start()}; write "
                f"{token[0] * 2} for a brace"
            )
        elif not column.strip():
            raise JobFileError(
                f"prompt.template: the braces at character {token.start()} name no column; write "
                "{column}, or {{}} for braces"
            )
        else:
            columns.append(column)
            texts.append("")
    texts[-1] += text[end:]
    if not columns:
        raise JobFileError(
            "prompt.template names no column, so every prompt would be the same; write {column} "
            "where a column belongs"
        )
    return Template(texts=tuple(texts), columns=tuple(columns))


def _text(values: Mapping[str, Any], column: str) -> str:
    if column not in values:
        raise RowTroubleError(
            "MissingPrompt", f"the row has no column `{column}`, which prompt.template uses"
        )
    value = values[column]
    if value is None:
        raise RowTroubleError(
            "NullPrompt", f"column `{column}`, which prompt.template uses, is null"
        )
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise RowTroubleError(
        "WrongType",
        f"column `{column}`, which prompt.template uses, must be text or a number, and is neither",
    )
