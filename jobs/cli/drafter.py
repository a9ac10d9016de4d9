"""`spotbatch drafter collect | train | eval | calibrate | diagnose`."""

import json
from pathlib import Path

import click

from jobs.cli.drafter_calibrate import calibrate_command
from jobs.cli.drafter_diagnose import diagnose_command
from jobs.cli.drafter_train import eval_command, train_command
from jobs.cli.options import job_file_arguments

_directory = click.Path(path_type=Path)


@click.group("drafter")
def command() -> None:
    """Make a drafter for a target: collect trajectories, train, evaluate, calibrate, diagnose.

    Under the exact verifiers (the default) a drafter cannot change an output; a better one only
    saves forwards.
    """


@command.command("collect")
@job_file_arguments
@click.option("--out", required=True, type=_directory, help="Directory for the trajectories.")
@click.pass_context
def collect_command(
    ctx: click.Context, job_file: Path, overrides: tuple[str, ...], out: Path
) -> None:
    """Run the job without drafts and keep every state that its samples go through.

    A job like any other, in the directory --out: run again, it goes on with what is missing.
    """
    from jobs.cli.run import command as run_command

    settings = ("work=collect", f"output.uri={json.dumps(str(out))}")
    ctx.invoke(run_command, reference=str(job_file), overrides=(*overrides, *settings))


for verb in (train_command, eval_command, calibrate_command, diagnose_command):
    command.add_command(verb)
