"""`spotbatch extend`."""

import os

import click

from jobs.cli.options import job_arguments, json_option, print_json


@click.command("extend")
@job_arguments
@click.option("--dry-run", is_flag=True, help="Check the input and say what would be added.")
@json_option
def command(reference: str, overrides: tuple[str, ...], *, dry_run: bool, as_json: bool) -> None:
    """Add the rows that were appended to the input of a complete job.

    JOB is a job file, or the directory or URI of a planned job. Rows that are planned must be as
    they were; those behind them become further shards, which `run` decodes beside what is there.
    Rows can be appended to the last file, or in files that come after it.
    """
    from jobs.extending import extend_job
    from jobs.resuming import stored_and_job

    job, spec = stored_and_job(reference, overrides, environment=os.environ)
    extended = extend_job(job, spec, dry_run=dry_run)
    if as_json:
        print_json(extended.to_json())
        return
    click.echo(extended.line())
    for name, count in extended.error_rows.items():
        click.echo(f"warning: {count} of them cannot be decoded: {name}", err=True)
