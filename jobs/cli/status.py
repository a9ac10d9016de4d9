"""`spotbatch status`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from jobs.cli.options import job_uri_argument, json_option, print_json

if TYPE_CHECKING:
    from jobs.status import JobStatus


@click.command("status")
@job_uri_argument
@json_option
@click.option("--watch", is_flag=True, help="Look again until the job is complete or stopped.")
@click.option(
    "--interval",
    metavar="SECONDS",
    default=2.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    help="Time between two looks of --watch.",
)
@click.option(
    "--missing",
    is_flag=True,
    help="Print only the shards without a commit record, as in 1-2,5: what --shards takes.",
)
def command(uri: str, *, as_json: bool, watch: bool, interval: float, missing: bool) -> None:
    """Say where a job stands, from its directory alone: no cluster is asked.

    States: planned, running (a driver spoke within the last minute), stopped (`spotbatch run` goes
    on), complete. With --json, --watch prints one JSON object a line.
    """
    from jobs.reading import open_job

    job = open_job(uri)
    if watch:
        import time

        from jobs.watching import watch_status

        statuses = watch_status(job, interval_s=interval, sleep=time.sleep)
        _follow(statuses, as_json=as_json, missing=missing)
        return
    from datetime import UTC, datetime

    from jobs.status import read_status

    status = read_status(job, now=datetime.now(UTC))
    if missing:
        click.echo(status.missing)
    elif as_json:
        print_json(status.to_json())
    else:
        _print(status)


def _print(status: "JobStatus") -> None:
    from jobs.report_table import format_lines

    click.echo(format_lines(status.lines()))


def _follow(statuses: Iterable["JobStatus"], *, as_json: bool, missing: bool) -> None:
    """On a terminal the table stays in place; elsewhere a line is printed when it changed."""
    from jobs.cli.following import follow

    if missing:
        follow(statuses, line=lambda status: status.missing)
    elif as_json:
        import json

        follow(statuses, line=lambda status: json.dumps(status.to_json(), ensure_ascii=False))
    else:
        follow(statuses, line=lambda status: status.line(), table=lambda status: status.lines())
