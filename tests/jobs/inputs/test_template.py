"""Templates: plain placeholders and nothing else."""

from typing import Any

import pytest

from jobs.inputs.base import RowTroubleError
from jobs.inputs.template import parse_template
from manifests.errors import JobFileError


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("{a}", {"a": "x"}, "x"),
        ("say {a} to {b}!", {"a": "hi", "b": "you"}, "say hi to you!"),
        ("{a}{a}", {"a": 1}, "11"),
        ("{{{a}}} {{}}", {"a": 1.5}, "{1.5} {}"),
        ("{a b}", {"a b": True}, "true"),
        ("{a.b} {a[0]}", {"a.b": "dot", "a[0]": "index"}, "dot index"),
        ("{a}", {"a": "{b} {{"}, "{b} {{"),
        ("{a!r}", {"a!r": "x"}, "x"),
        ("{a:>9}", {"a:>9": "x"}, "x"),
    ],
)
def test_a_placeholder_is_a_column_and_nothing_else(
    template: str, values: dict[str, Any], text: str
) -> None:
    assert parse_template(template).fill(values) == text


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("no column", "names no column"),
        ("{a", "a lone { at character 0; write {{"),
        ("a} {a}", "a lone } at character 1; write }}"),
        ("{a} {}", "the braces at character 4 name no column"),
        ("{a{b}}", "a lone {"),
    ],
)
def test_braces_that_do_not_match_are_refused(template: str, words: str) -> None:
    with pytest.raises(JobFileError, match=words):
        parse_template(template)


@pytest.mark.parametrize(
    ("values", "error_class"),
    [
        ({}, "MissingPrompt"),
        ({"a": None}, "NullPrompt"),
        ({"a": ["x"]}, "WrongType"),
        ({"a": {"b": 1}}, "WrongType"),
    ],
)
def test_a_value_that_cannot_be_inserted_is_trouble_of_the_row(
    values: dict[str, Any], error_class: str
) -> None:
    with pytest.raises(RowTroubleError, match="column `a`") as caught:
        parse_template("{a}").fill(values)
    assert caught.value.trouble.error_class == error_class
