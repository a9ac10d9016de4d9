"""Arguments that several verbs share."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from manifests.job import JobSpec

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def job_file_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """`JOB.yaml` and `--set`; the verb gets one `job`."""
    function = click.option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        multiple=True,
        help="Override a setting, as in --set decode.draft_budget=8. May be repeated.",
    )(function)
    return click.argument("job_file", metavar="JOB.yaml", type=click.Path(path_type=Path))(function)


job_uri_argument = click.argument("uri", metavar="JOB_URI")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def load(job_file: Path, overrides: tuple[str, ...]) -> JobSpec:
    """The job that the shared arguments name."""
    from jobs.job_file import load_job

    return load_job(job_file, overrides, environment=os.environ)


def warn(warnings: tuple[str, ...]) -> None:
    """Print warnings on stderr."""
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def print_json(value: Mapping[str, Any]) -> None:
    """Print data on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
