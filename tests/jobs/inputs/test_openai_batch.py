"""OpenAI batch JSONL: what is served, and that nothing it asks for is ignored."""

import json
from pathlib import Path
from typing import Any

import pytest

from manifests.staged import StagedRow
from tests.jobs.inputs.support import rows_over

MESSAGES = [{"role": "user", "content": "hi"}]


def request(custom_id: object = "r0", *, url: str = "/v1/chat/completions", **body: Any) -> object:
    body = {"model": "m", "messages": MESSAGES} | body
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": body}


def stage(folder: Path, lines: list[object], **groups: Any) -> list[StagedRow]:
    path = folder / "batch.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return rows_over(path, format="openai", **groups)


def stage_one(folder: Path, line: object, **groups: Any) -> StagedRow:
    (row,) = stage(folder, [line], **groups)
    return row


def test_id_messages_and_parameters_are_taken_and_the_model_is_carried(tmp_path: Path) -> None:
    row = stage_one(tmp_path, request("r7", max_tokens=9, temperature=0.5, seed=3))
    assert (row.id, row.messages) == ("r7", '[{"role": "user", "content": "hi"}]')
    assert (row.max_tokens, row.temperature, row.seed) == (9, 0.5, 3)
    assert row.carried == '{"model": "m"}'


def test_the_newer_name_of_the_budget_wins(tmp_path: Path) -> None:
    assert stage_one(tmp_path, request(max_tokens=9, max_completion_tokens=5)).max_tokens == 5


def test_text_parts_are_joined(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    row = stage_one(tmp_path, request(messages=[{"role": "user", "content": parts}]))
    assert row.messages == '[{"role": "user", "content": "a\\nb"}]'


def test_the_system_message_of_the_job_goes_before_those_without_one(tmp_path: Path) -> None:
    own = [{"role": "system", "content": "own"}, *MESSAGES]
    prompt = {"system": "be brief"}
    rows = stage(tmp_path, [request("a"), request("b", messages=own)], prompt=prompt)
    assert [json.loads(row.messages or "")[0]["content"] for row in rows] == ["be brief", "own"]


@pytest.mark.parametrize(
    "body",
    [
        {"n": 1, "top_p": 1.0, "stop": None, "stream": False, "user": "u", "logprobs": False},
        {"frequency_penalty": 0, "presence_penalty": 0.0, "response_format": {"type": "text"}},
        {"tools": [], "metadata": {"a": "b"}},
    ],
)
def test_what_the_job_does_anyway_may_be_asked_for(tmp_path: Path, body: dict[str, Any]) -> None:
    assert stage_one(tmp_path, request(**body)).error_class is None


def test_stop_strings_and_samples_of_the_job_may_be_repeated(tmp_path: Path) -> None:
    groups = {"decode": {"stop": ["END"]}, "sampling": {"n": 2}}
    assert stage_one(tmp_path, request(stop="END", n=2), **groups).error_class is None


@pytest.mark.parametrize(
    ("line", "error_class", "words"),
    [
        (request(n=3), "UnsupportedParameter", "asks for n 3, and sampling.n is 1"),
        (request(top_p=0.5), "UnsupportedParameter", "asks for top_p 0.5, and decode.top_p is 1.0"),
        (request(stop=["x"]), "UnsupportedParameter", "decode.stop is []"),
        (request(tools=[{"type": "function"}]), "UnsupportedParameter", "`tools`"),
        (request(response_format={"type": "json_object"}), "UnsupportedParameter", "`response_"),
        (request(frequency_penalty=0.5), "UnsupportedParameter", "`frequency_penalty`"),
        (request(nonsense=1), "UnsupportedParameter", "asks for `nonsense`, which cannot be had"),
        (request(url="/v1/embeddings"), "UnsupportedRequest", "only POST /v1/chat/completions"),
        ({"custom_id": "r0", "body": None}, "MissingPrompt", "no `body` object"),
        ({"custom_id": "r0", "body": {}}, "MissingPrompt", "no `messages`"),
        (request(messages="hi"), "WrongType", "must be a list"),
        (request(messages=[]), "EmptyPrompt", "holds no message"),
        (request(messages=[{"role": "user", "content": None}]), "WrongType", "a text `content`"),
        (
            request(messages=[{"role": "user", "content": [{"type": "image_url"}]}]),
            "UnsupportedParameter",
            "parts that are not text",
        ),
        (request(max_tokens="lots"), "WrongType", "column `max_tokens` must be a whole number"),
        (request(None), "MissingId", "column `custom_id` holds no id"),
    ],
)
def test_what_cannot_be_had_is_an_error_row_with_its_id(
    tmp_path: Path, line: object, error_class: str, words: str
) -> None:
    good, bad = stage(tmp_path, [request("good"), line])
    assert (good.error_class, bad.error_class) == (None, error_class)
    assert bad.error_message is not None
    assert bad.error_message.startswith("batch.jsonl, line 2: ")
    assert words in bad.error_message
    assert bad.id == ("batch.jsonl:1" if error_class == "MissingId" else "r0")


def test_a_temperature_of_its_own_needs_an_exact_verifier(tmp_path: Path) -> None:
    decode = {"verifier": "greedy", "temperature": 1.0, "draft_budget": 4}
    same, other = stage(
        tmp_path, [request("a", temperature=1), request("b", temperature=0.5)], decode=decode
    )
    assert (same.error_class, other.error_class) == (None, "UnsupportedParameter")
