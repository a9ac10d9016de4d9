"""The command line as scripts know it: verbs, options and what help says."""

import click
import pytest
from click.testing import CliRunner

from jobs.cli.group import cli

SURFACE = {
    "schema": {"--markdown"},
    "validate": {"JOB.yaml", "--set"},
    "plan": {"JOB.yaml", "--set", "--write", "--measure", "--json"},
    "run": {"JOB", "--set", "--preview", "--stop-after", "--take-over"},
    "submit": {"JOB", "--set", "--address", "--wait", "--dry-run"},
    "drain": {"JOB_URI"},
    "cancel": {"JOB_URI"},
    "status": {"JOB_URI", "--json", "--watch", "--interval", "--missing"},
    "list": {"ROOT", "--json"},
    "logs": {"JOB_URI", "--shards", "--json", "--driver", "--address"},
    "inspect": {
        *("JOB_URI", "--json", "--number", "--errors", "--finish-reason", "--id", "--shards"),
    },
    "stats": {"JOB_URI", "--json", "--scorer", "--no-score"},
    "report": {"JOB_URI", "--out", "--scorer", "--no-score"},
    "verify": {"JOB_URI", "--json", "--replay", "--seed"},
    "retry": {
        "JOB_URI",
        "--failed",
        "--shards",
        "--errors",
        "--finish-reason",
        "--set",
        "--take-over",
    },
    "extend": {"JOB", "--set", "--dry-run", "--json"},
    "gc": {"JOB_URI", "--dry-run", "--superseded"},
    "files": {"JOB_URI", "--absolute"},
    "export": {"JOB_URI", "DESTINATION", "--rows-per-file", "--format", "--json"},
    "completion": {"SHELL"},
}


def verb(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


@pytest.mark.parametrize("name", SURFACE)
def test_a_verb_has_exactly_these_arguments(name: str) -> None:
    params = {
        param.human_readable_name if isinstance(param, click.Argument) else param.opts[-1]
        for param in verb(name).params
    }
    assert params == SURFACE[name]


@pytest.mark.parametrize("name", SURFACE)
def test_every_verb_and_option_explains_itself(name: str) -> None:
    command = verb(name)
    assert command.help
    assert all(param.help for param in command.params if isinstance(param, click.Option))
    assert CliRunner().invoke(cli, [name, "--help"]).exit_code == 0


def test_help_lists_the_verbs_in_the_order_of_a_jobs_life() -> None:
    output = CliRunner().invoke(cli, ["--help"]).output
    places = [output.index(f"  {name} ") for name in SURFACE]
    assert places == sorted(places)


@pytest.mark.parametrize("arguments", [["nonsense"], ["run"], ["run", "a.yaml", "--nonsense"]])
def test_wrong_usage_exits_with_two(arguments: list[str]) -> None:
    assert CliRunner().invoke(cli, arguments).exit_code == 2


def test_the_version_is_the_distributions() -> None:
    assert "0.1.0" in CliRunner().invoke(cli, ["--version"]).output
