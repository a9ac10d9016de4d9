"""Committed rows as OpenAI batch output: a line per row with its answers, and a file of errors.

The samples of a row are the choices of one response. A row whose samples all failed has a line in
the error file only; one of whose samples some failed has a line in both, and none is lost. Lines
depend on nothing but job and rows, so that writing them again gives the same bytes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from manifests.hashing import hash64
from manifests.plan import Plan

COLUMNS = (
    *("shard", "row", "id", "sample", "text", "finish_reason", "tokens_with_stop"),
    *("prompt_tokens", "error_class", "error_message", "carried"),
)
Row = Mapping[str, Any]
Line = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What was written."""

    responses: int
    errors: int


def write_openai_batch(
    tables: Iterable[pa.Table], plan: Plan, *, output: IO[str], errors: IO[str]
) -> Counts:
    """Write the lines of committed tables, which hold `COLUMNS`, in their order.

    Args:
        tables: the rows; all samples of a row are in one table, side by side.
        plan: the job that they belong to.
        output: takes the rows with an answer.
        errors: takes the rows and samples without one.
    """
    num_responses = num_errors = 0
    for samples in _rows(tables):
        answered = [sample for sample in samples if sample["error_class"] is None]
        failed = [sample for sample in samples if sample["error_class"] is not None]
        if answered:
            output.write(_json(response_line(answered, plan)))
            num_responses += 1
        if failed:
            errors.write(_json(error_line(failed, plan, num_samples=len(samples))))
            num_errors += 1
    return Counts(responses=num_responses, errors=num_errors)


def _rows(tables: Iterable[pa.Table]) -> Iterator[list[Row]]:
    for table in tables:
        values = table.select(list(COLUMNS)).to_pylist()
        for _, samples in groupby(values, key=itemgetter("shard", "row")):
            yield list(samples)


def response_line(samples: Sequence[Row], plan: Plan) -> Line:
    """A row's line in the output file; none of its samples is an error."""
    row_id = samples[0]["id"]
    name = _name(plan, samples[0])
    body = {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion",
        "created": int(datetime.fromisoformat(plan.created).timestamp()),
        "model": _model(samples[0], plan),
        "choices": [_choice(sample) for sample in samples],
        "usage": _usage(samples),
    }
    response = {"status_code": 200, "request_id": f"req_{name}", "body": body}
    return {"id": f"batch_req_{name}", "custom_id": row_id, "response": response, "error": None}


def _usage(samples: Sequence[Row]) -> Line:
    """Tokens of the one prompt, and of all its answers."""
    prompt = samples[0]["prompt_tokens"]
    completion = sum(sample["tokens_with_stop"] for sample in samples)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _choice(sample: Row) -> Line:
    return {
        "index": sample["sample"],
        "message": {"role": "assistant", "content": sample["text"]},
        "logprobs": None,
        "finish_reason": sample["finish_reason"],
    }


def error_line(samples: Sequence[Row], plan: Plan, *, num_samples: int) -> Line:
    """A row's line in the error file, by the first of its failed samples."""
    row_id, first = samples[0]["id"], samples[0]
    message = first["error_message"]
    if num_samples > 1 and len(samples) < num_samples:
        numbers = ", ".join(str(sample["sample"]) for sample in samples)
        message = f"samples {numbers} of {num_samples}: {message}"
    error = {"code": first["error_class"], "message": message}
    name = _name(plan, first)
    return {"id": f"batch_req_{name}", "custom_id": row_id, "response": None, "error": error}


def _name(plan: Plan, sample: Row) -> str:
    return f"{hash64('request', plan.job_id, sample['shard'], sample['row']):016x}"


def _model(sample: Row, plan: Plan) -> str:
    """What the request called the target, or the target's directory."""
    carried = json.loads(sample["carried"] or "{}")
    asked = carried.get("model") if plan.job.input.format == "openai" else None
    return str(asked or Path(plan.job.target.path).name)


def _json(line: Line) -> str:
    return json.dumps(line, ensure_ascii=False) + "\n"
