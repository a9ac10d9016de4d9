"""`spotbatch drain`."""

import click

from jobs.cli.options import job_uri_argument


@click.command("drain")
@job_uri_argument
def command(uri: str) -> None:
    """Ask the driver of a job to stop soon: what runs is finished, the rest is left to another run.

    Works from any machine that can write to JOB_URI. The driver exits with code 3.
    """
    from jobs.stopping import ask

    for line in ask(uri, "drain"):
        click.echo(line)
