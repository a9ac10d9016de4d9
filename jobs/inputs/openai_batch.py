"""OpenAI batch JSONL: `custom_id` and the body of a `/v1/chat/completions` request in each line.

A parameter of the body that would change the output and cannot be had is trouble of its row, never
ignored; one that says what the job does anyway is taken.
"""

from collections.abc import Mapping
from typing import Any

from jobs.inputs.base import RowTroubleError
from manifests.job import JobSpec
from manifests.job_input import Columns

URL = "/v1/chat/completions"
OPENAI_COLUMNS = Columns(
    id="custom_id",
    messages="messages",
    max_tokens="max_tokens",
    temperature="temperature",
    seed="seed",
)
_TAKEN = frozenset({"messages", "max_tokens", "max_completion_tokens", "temperature", "seed"})
# Of no consequence for the output of a batch job.
_INERT = frozenset({"user", "store", "service_tier", "safety_identifier", "prompt_cache_key"})
_CARRIED = ("model", "metadata")
# What each of these has to say, if it is there, for there is nothing else that it could do.
_NEUTRAL: dict[str, Any] = {
    "stream": False,
    "logprobs": False,
    "top_logprobs": 0,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "logit_bias": {},
    "tools": [],
    "response_format": {"type": "text"},
}


def unpack_request(values: Mapping[str, Any], job: JobSpec) -> dict[str, Any]:
    """The line as columns under the names of `OPENAI_COLUMNS`, and those to be carried.

    Raises:
        RowTroubleError: it is another kind of request, or one that the job cannot serve.
    """
    _check_envelope(values)
    body = values["body"]
    for name, value in body.items():
        if value is not None and name not in _TAKEN | _INERT | set(_CARRIED):
            _check_parameter(name, value, job)
    return {
        "custom_id": values.get("custom_id"),
        "messages": [_plain_message(message) for message in _messages(body)],
        "max_tokens": _max_tokens(body),
        "temperature": _temperature(body, job),
        "seed": body.get("seed"),
        **{name: body[name] for name in _CARRIED if body.get(name) is not None},
    }


def _check_envelope(values: Mapping[str, Any]) -> None:
    if values.get("method", "POST") != "POST" or values.get("url", URL) != URL:
        raise RowTroubleError(
            "UnsupportedRequest",
            f"the request is {values.get('method', 'POST')} {values.get('url', URL)}; only POST "
            f"{URL} can be served",
        )
    if not isinstance(values.get("body"), dict):
        raise RowTroubleError("MissingPrompt", "the request has no `body` object")


def _check_parameter(name: str, value: Any, job: JobSpec) -> None:
    """Refuse a parameter unless its value is what the job does anyway."""
    decode = job.decode
    ours: dict[str, tuple[str, Any]] = {
        "n": ("sampling.n", job.sampling.n),
        "top_p": ("decode.top_p", decode.top_p),
        "stop": ("decode.stop", list(decode.stop)),
    }
    if name in ours:
        setting, current = ours[name]
        asked = [value] if name == "stop" and isinstance(value, str) else value
        if asked != current:
            raise RowTroubleError(
                "UnsupportedParameter",
                f"the body asks for {name} {value!r}, and {setting} is {current!r} for the whole "
                "job; change one of the two",
            )
    elif name not in _NEUTRAL or value != _NEUTRAL[name]:
        raise RowTroubleError(
            "UnsupportedParameter", f"the body asks for `{name}`, which cannot be had; remove it"
        )


def _messages(body: Mapping[str, Any]) -> list[Any]:
    messages = body.get("messages")
    if messages is None:
        raise RowTroubleError("MissingPrompt", "the body has no `messages`")
    if not isinstance(messages, list):
        raise RowTroubleError("WrongType", "the body's `messages` must be a list")
    return messages


def _plain_message(message: Any) -> Any:
    """A message with its text parts joined; what is no object is found by the checks behind."""
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return message
    parts = message["content"]
    if not all(isinstance(part, dict) and part.get("type") == "text" for part in parts):
        raise RowTroubleError(
            "UnsupportedParameter", "a message holds parts that are not text; only text can be read"
        )
    return {**message, "content": "\n".join(str(part.get("text", "")) for part in parts)}


def _max_tokens(body: Mapping[str, Any]) -> Any:
    newer = body.get("max_completion_tokens")
    return body.get("max_tokens") if newer is None else newer


def _temperature(body: Mapping[str, Any], job: JobSpec) -> Any:
    asked, verifier = body.get("temperature"), job.decode.verifier
    if asked is None or asked == job.decode.temperature:
        return None
    if verifier in ("greedy", "rejection"):
        raise RowTroubleError(
            "UnsupportedParameter",
            f"the body asks for temperature {asked!r}, and decode.verifier {verifier} takes one "
            "temperature for the whole job; use coupled",
        )
    return asked
