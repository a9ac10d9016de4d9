"""The groups `input` and `prompt`: combinations that cannot work."""

from typing import Any

import pytest
from pydantic import ValidationError

from manifests.job_input import Columns, Input
from tests.manifests.builders import job_spec

URI = "/data/prompts.jsonl"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"uri": []}, "input.uri is an empty list; name at least one file"),
        (
            {"uri": URI, "format": "openai", "columns": {"seed": "s"}},
            "input.columns.seed has no effect with input.format openai",
        ),
        (
            {"uri": URI, "columns": {"prompt": "p", "messages": "m"}},
            "`messages` replaces `prompt`; remove one of the two",
        ),
        (
            {"uri": URI, "format": "jsonl", "delimiter": ";"},
            "input.delimiter has no effect with input.format jsonl",
        ),
        *(
            ({"uri": URI, "format": "csv", "delimiter": delimiter}, "give one ASCII character")
            for delimiter in (";;", "\n", '"', "\u00a7")
        ),
    ],
)
def test_inputs_that_cannot_work_are_refused(source: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        job_spec(input=source)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ({"chat_template": "none", "system": "s"}, "prompt.system needs a chat template"),
        (
            {"chat_template": "none", "chat_template_args": {"a": 1}},
            "prompt.chat_template_args needs a chat template",
        ),
        ({"chat_template_args": {"tools": "x"}}, "`tools` is not a variable of a template"),
    ],
)
def test_prompts_that_cannot_be_made_are_refused(prompt: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        job_spec(prompt=prompt)


@pytest.mark.parametrize(
    ("source", "prompt", "message"),
    [
        (
            {"uri": URI, "format": "openai"},
            {"template": "{a}"},
            "prompt.template and input.format openai both say what the prompt is",
        ),
        (
            {"uri": URI, "columns": {"messages": "m"}},
            {"template": "{a}"},
            "prompt.template and input.columns both say what the prompt is",
        ),
        (
            {"uri": URI, "columns": {"prompt": "p"}},
            {"template": "{a}"},
            "prompt.template and input.columns both say what the prompt is",
        ),
        (
            {"uri": URI, "columns": {"messages": "m"}},
            {"chat_template": "none"},
            "messages need a chat template",
        ),
    ],
)
def test_a_prompt_has_one_source(
    source: dict[str, Any], prompt: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        job_spec(input=source, prompt=prompt)


def test_prompts_that_can_be_made_are_accepted() -> None:
    job = job_spec(input={"uri": URI}, prompt={"chat_template": "none"})
    assert job.prompt.chat_template == "none"
    job = job_spec(input={"uri": [URI, "/b.jsonl"]}, prompt={"template": "{a}", "system": "s"})
    assert (job.input.uris, job.prompt.system) == ((URI, "/b.jsonl"), "s")


@pytest.mark.parametrize("delimiter", [";", "\t", None])
def test_csv_files_may_have_a_delimiter(delimiter: str | None) -> None:
    job = job_spec(input={"uri": "/data/a.csv", "delimiter": delimiter})
    assert job.input.delimiter == delimiter


def test_one_uri_is_a_list_of_one() -> None:
    assert Input(uri=URI).uris == (URI,)


def test_only_columns_with_a_name_are_named() -> None:
    assert Columns(seed="s", id="i").named == {"id": "i", "seed": "s"}
