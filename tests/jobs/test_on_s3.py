"""A whole job under an S3 prefix: inputs, model, staging, output and every verb that reads it."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli.group import cli
from jobs.job_file import load_job
from jobs.planning import plan_job
from jobs.reading import open_job, read_committed
from manifests.committed import committed_rows
from manifests.job import JobSpec
from manifests.protocol import seal_job
from manifests.store import open_store
from manifests.verification import verify_structure
from tests.jobs.support import commit, prompts, write_rows, write_target
from tests.s3_server import CANARY_KEY_ID, CANARY_SECRET

pytestmark = pytest.mark.s3


def put_files(folder: Path, uri: str) -> None:
    """Every file of a folder as an object below a URI."""
    for path in sorted(folder.iterdir()):
        open_store(uri).put_file_if_absent(path.name, path)


@pytest.fixture
def job(tmp_path: Path, s3_bucket: str) -> JobSpec:
    """A job that has everything in S3: two input files behind a glob, the target, the output."""
    rows = tmp_path / "rows"
    rows.mkdir()
    write_rows(rows / "b.jsonl", prompts(5)[3:])
    write_rows(rows / "a.jsonl", prompts(3))
    put_files(rows, f"s3://{s3_bucket}/in/day=1")
    put_files(write_target(tmp_path / "target"), f"s3://{s3_bucket}/models/tiny")
    job_file = tmp_path / "job.yaml"
    job_file.write_text(
        f"input: {{uri: 's3://{s3_bucket}/in/*/*.jsonl', columns: {{id: id}}}}\n"
        f"target: {{path: s3://{s3_bucket}/models/tiny}}\n"
        f"output: {{uri: s3://{s3_bucket}/out/job, trace: commits}}\n"
        "shards: {rows: 2}\n"
    )
    return load_job(job_file)


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_job_lives_in_s3_from_its_plan_to_its_report(job: JobSpec) -> None:
    planned = plan_job(job)
    uri = job.output.uri
    assert [file.path.rpartition("/")[2] for file in planned.plan.input] == ["a.jsonl", "b.jsonl"]
    assert {os.path.dirname(file.path) for file in planned.plan.target_files} == {job.target.path}

    commit(planned, shards=[0])
    assert json.loads(invoke("status", uri, "--json"))["shards"] == 1

    again = plan_job(job)  # another driver goes on with what is missing
    assert (again.created, again.plan) == (False, planned.plan)
    commit(again, shards=[1, 2])
    seal_job(again.store, again.plan)

    opened = open_job(uri)
    assert verify_structure(opened.store) == []
    assert "no finding" in invoke("verify", uri)
    records = read_committed(opened).records
    files = [f"{uri}/{records[shard].data_key}" for shard in range(3)]
    assert invoke("files", uri, "--absolute").split() == files
    tables = committed_rows(opened.store, opened.plan, records)
    assert [row for table in tables for row in table["id"].to_pylist()] == [
        f"r{row}" for row in range(5)
    ]
    assert json.loads(invoke("stats", uri, "--json"))["ok"] == 5
    assert json.loads(invoke("status", uri, "--json"))["state"] == "complete"


def test_no_credential_is_in_anything_that_a_job_stores_or_says(
    job: JobSpec, caplog: pytest.LogCaptureFixture
) -> None:
    planned = plan_job(job)
    commit(planned, shards=[0, 1, 2])
    seal_job(planned.store, planned.plan)
    said = [invoke("status", job.output.uri), invoke("verify", job.output.uri), caplog.text]
    stored = [planned.store.get(key) for key in planned.store.list("")]
    assert len(stored) >= 8
    for secret in (CANARY_SECRET, CANARY_KEY_ID):
        assert not any(secret in text for text in said)
        assert not any(secret.encode() in data for data in stored)
