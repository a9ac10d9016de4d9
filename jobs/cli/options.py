"""Arguments that several verbs share."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from manifests.job import JobSpec

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def _files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def _settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of settings, for a shell to complete."""
    from jobs.fields import all_fields, group_of

    leaves = (name for name, field in all_fields().items() if group_of(field) is None)
    return [f"{name}=" for name in leaves if name.startswith(incomplete)]


_set_option = click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Override a setting, as in --set decode.draft_budget=8. May be repeated.",
    shell_complete=_settings,
)


def job_file_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """`JOB.yaml` and `--set`."""
    argument = click.argument("job_file", metavar="JOB.yaml", type=click.Path(path_type=Path))
    return argument(_set_option(function))


def job_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """`JOB`, a job file or the place of a planned job, and `--set`."""
    argument = click.argument("reference", metavar="JOB", shell_complete=_files)
    return argument(_set_option(function))


job_uri_argument = click.argument("uri", metavar="JOB_URI", shell_complete=_folders)
shards_option = click.option(
    "--shards", metavar="RANGES", help="Only these shards, as in 1-2,5: what status --missing says."
)
address_option = click.option(
    "--address",
    metavar="URL",
    help="Ray's dashboard, as in http://head:8265. [default: RAY_API_SERVER_ADDRESS]",
)


def scorer_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--scorer` and `--no-score`."""
    function = click.option("--no-score", is_flag=True, help="Leave accuracy out.")(function)
    return click.option(
        "--scorer", metavar="MODULE:FUNCTION", help="Score with this, not stats.scorer."
    )(function)


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
