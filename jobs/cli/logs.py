"""`spotbatch logs`."""

import json

import click

from jobs.cli.options import address_option, job_uri_argument, json_option, shards_option


@click.command("logs")
@job_uri_argument
@shards_option
@json_option
@click.option(
    "--driver",
    is_flag=True,
    help="Instead, print the log of the driver that `submit` started last; asks the cluster.",
)
@address_option
def command(
    uri: str, *, shards: str | None, as_json: bool, driver: bool, address: str | None
) -> None:
    """Say why attempts failed: their errors and the ends of their logs, from storage alone.

    Attempts that were made good later are told too. Logs hold row ids and never text of rows.
    With --json, one object a line.
    """
    from jobs.reading import open_job

    if driver and (shards or as_json):
        raise click.UsageError("--driver prints one log whole; leave --shards and --json out")
    if address is not None and not driver:
        raise click.UsageError("--address is for --driver; logs of attempts are in storage")
    job = open_job(uri)
    if driver:
        from jobs.submitting import driver_log
        from jobs.submitting_client import connect

        click.echo(driver_log(connect(address), job.plan.job_id), nl=False)
        return
    from jobs.attempt_logs import failed_attempts
    from jobs.plain_text import printable
    from jobs.shard_ranges import parse_ranges

    chosen = None if shards is None else set(parse_ranges(shards))
    for attempt in failed_attempts(job, shards=chosen):
        if as_json:
            click.echo(json.dumps(attempt.to_json(), ensure_ascii=False))
        else:
            click.echo("\n".join(printable(line) for line in attempt.lines()))
