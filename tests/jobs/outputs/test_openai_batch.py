"""OpenAI batch output: every row of a job is in one of the two files, and can be joined by id."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.inputs.openai_batch import URL
from jobs.outputs.openai_batch import COLUMNS, Counts, write_openai_batch
from jobs.reading import OpenJob, read_committed
from manifests.committed import committed_rows
from tests.jobs.support import finished_job, prompts

Lines = list[dict[str, Any]]


def written(job: OpenJob, tables: list[pa.Table] | None = None) -> tuple[Lines, Lines, Counts]:
    output, errors = io.StringIO(), io.StringIO()
    records = read_committed(job).records
    found = tables or committed_rows(job.store, job.plan, records, columns=COLUMNS)
    counts = write_openai_batch(found, job.plan, output=output, errors=errors)
    lines = [
        [json.loads(line) for line in file.getvalue().splitlines()] for file in (output, errors)
    ]
    return lines[0], lines[1], counts


def test_a_row_is_a_response_with_its_samples_as_choices(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(3), set_=["sampling.n=2"])
    responses, errors, counts = written(job)
    assert (counts, errors) == (Counts(responses=3, errors=0), [])
    assert [line["custom_id"] for line in responses] == ["r0", "r1", "r2"]
    first = responses[0]
    body = first["response"]["body"]
    assert (first["error"], first["response"]["status_code"]) == (None, 200)
    assert (body["object"], body["model"]) == ("chat.completion", "target")
    assert [(c["index"], c["message"]["content"], c["finish_reason"]) for c in body["choices"]] == [
        (0, "echo: say 0", "stop"),
        (1, "echo: say 0", "stop"),
    ]
    completion = 2 * (len("say 0") + 1)
    assert body["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": completion,
        "total_tokens": 10 + completion,
    }


def test_an_error_row_is_a_line_of_the_error_file_only(tmp_path: Path) -> None:
    rows = [*prompts(1), {"id": "bad", "prompt": None}]
    responses, errors, counts = written(finished_job(tmp_path, rows=rows))
    assert (len(responses), counts) == (1, Counts(responses=1, errors=1))
    (line,) = errors
    assert (line["custom_id"], line["response"]) == ("bad", None)
    assert line["error"]["code"] == "NullPrompt"
    assert "column `prompt` is null" in line["error"]["message"]


def test_a_second_row_with_an_id_is_not_taken_for_the_first(tmp_path: Path) -> None:
    rows = [*prompts(1), *prompts(1)]
    responses, errors, _ = written(finished_job(tmp_path, rows=rows))
    assert [line["custom_id"] for line in (*responses, *errors)] == ["r0", "r0"]
    assert errors[0]["error"]["code"] == "DuplicateId"
    assert errors[0]["error"]["message"].startswith("prompts.jsonl, line 2: id `r0` belongs")
    assert responses[0]["id"] != errors[0]["id"]


def test_a_row_with_some_failed_samples_is_in_both_files(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(1), set_=["sampling.n=3"])
    records = read_committed(job).records
    (table,) = committed_rows(job.store, job.plan, records, columns=COLUMNS)
    values = table.to_pylist()
    values[1] |= {"text": None, "error_class": "Boom", "error_message": "it broke"}
    responses, errors, _ = written(job, [pa.Table.from_pylist(values, schema=table.schema)])
    choices = responses[0]["response"]["body"]["choices"]
    assert [choice["index"] for choice in choices] == [0, 2]
    assert errors[0]["error"] == {"code": "Boom", "message": "samples 1 of 3: it broke"}


def test_names_are_unique_and_the_same_when_written_again(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=prompts(5))
    first, second = written(job)[0], written(job)[0]
    assert first == second
    assert len({line["id"] for line in first}) == 5


@pytest.mark.parametrize("model", ["gpt", None])
def test_requests_get_their_model_back(tmp_path: Path, model: str | None) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "model": model}
    rows = [{"custom_id": "x", "method": "POST", "url": URL, "body": body}]
    settings = ["input.format=openai", "input.columns.id=null"]
    job = finished_job(tmp_path, rows=rows, set_=settings)
    (line,) = written(job)[0]
    assert line["response"]["body"]["model"] == (model or "target")
