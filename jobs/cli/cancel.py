"""`spotbatch cancel`."""

import click

from jobs.cli.options import job_uri_argument


@click.command("cancel")
@job_uri_argument
def command(uri: str) -> None:
    """Ask the driver of a job to stop now: what runs is lost, what is committed stays.

    Works from any machine that can write to JOB_URI. The driver exits with code 130; `spotbatch
    run` goes on with what is missing.
    """
    from jobs.stopping import ask

    for line in ask(uri, "cancel"):
        click.echo(line)
