"""`spotbatch status`."""

import click

from jobs.cli.options import job_uri_argument, json_option, print_json


@click.command("status")
@job_uri_argument
@json_option
def command(uri: str, *, as_json: bool) -> None:
    """Say where a job stands, from its directory alone."""
    from datetime import UTC, datetime

    from jobs.reading import open_job
    from jobs.report_table import format_lines
    from jobs.status import read_status

    status = read_status(open_job(uri), now=datetime.now(UTC))
    if as_json:
        print_json(status.to_json())
    else:
        click.echo(format_lines(status.lines()))
