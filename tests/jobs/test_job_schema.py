"""The schema and the reference page say what job files are."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from pydantic.fields import FieldInfo

from jobs.cli.group import cli
from jobs.fields import all_fields, group_of
from jobs.job_schema import PAGE, job_schema, reference_page
from jobs.yaml_core import parse_yaml


def test_the_reference_page_is_up_to_date(repository: Path) -> None:
    stale = f"run `spotbatch schema --markdown > {PAGE}`"
    assert (repository / PAGE).read_text() == reference_page(), stale


def kind_of(field: FieldInfo) -> str:
    assert isinstance(field.json_schema_extra, dict)
    return str(field.json_schema_extra["kind"])


def test_every_setting_has_its_line_with_kind_and_meaning() -> None:
    lines = {
        line.split("|")[1].strip(): line for line in reference_page().splitlines() if "|" in line
    }
    for name, field in all_fields().items():
        if not group_of(field):
            assert str(field.description).replace("|", "\\|") in lines[f"`{name}`"]
            assert f"| {kind_of(field)} |" in lines[f"`{name}`"]


def test_the_command_prints_both() -> None:
    run = CliRunner().invoke
    assert run(cli, ["schema", "--markdown"]).output == reference_page()
    assert json.loads(run(cli, ["schema"]).output) == job_schema()


def test_the_schema_takes_the_job_files_of_the_examples(repository: Path) -> None:
    validator = Draft202012Validator(job_schema())
    paths = [*repository.glob("examples/[qt]*/*job*.yaml")]
    assert paths
    for path in paths:
        validator.validate(parse_yaml(path.read_text()))


@pytest.mark.parametrize(
    "change",
    [
        {"decode": {"max_token": 5}},
        {"decode": {"max_tokens": 0}},
        {"decode": {"max_tokens": "many"}},
        {"input": {}},
        {"nonsense": 1},
    ],
)
def test_the_schema_refuses_what_a_job_file_cannot_say(change: dict[str, Any]) -> None:
    job = {"input": {"uri": "p"}, "target": {"path": "m"}, "output": {"uri": "o"}} | change
    assert not Draft202012Validator(job_schema()).is_valid(job)
