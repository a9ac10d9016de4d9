"""`spotbatch retry`."""

from typing import Literal

import click

from jobs.cli.options import job_uri_argument


@click.command("retry")
@job_uri_argument
@click.option(
    "--failed",
    is_flag=True,
    help="Shards without output, or in a complete job shards with errors, whole.",
)
@click.option("--shards", metavar="RANGES", help="These shards, whole, as in 1-2,5.")
@click.option("--errors", is_flag=True, help="Rows that ended in an error.")
@click.option(
    "--finish-reason",
    type=click.Choice(["stop", "length"]),
    help="Rows that ended so; needs a --set that lets them end otherwise.",
)
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a setting for these rows, as in --set decode.max_tokens=512. May be repeated.",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="End a driver that runs this job already, instead of leaving with code 2.",
)
@click.pass_context
def command(
    ctx: click.Context,
    uri: str,
    *,
    failed: bool,
    shards: str | None,
    errors: bool,
    finish_reason: Literal["stop", "length"] | None,
    overrides: tuple[str, ...],
    take_over: bool,
) -> None:
    """Decode some rows of a job again and print what came of it.

    What is there stays until the new output is complete; rows that are not chosen are kept. Errors
    that planning found in the input are not tried again. Interrupted, the same command goes on, and
    so does `run`.
    """
    from jobs.cli.run import run_to_its_end
    from jobs.reading import open_job
    from jobs.resuming import planned_again
    from jobs.revising import RetryRequest, retry_job
    from jobs.shard_ranges import parse_ranges

    if sum([failed, shards is not None, errors, finish_reason is not None]) != 1:
        raise click.UsageError(
            "choose what to retry with exactly one of --failed, --shards, --errors and "
            "--finish-reason"
        )
    request = RetryRequest(
        failed=failed,
        shards=None if shards is None else tuple(parse_ranges(shards)),
        errors=errors,
        finish_reason=finish_reason,
    )
    job = open_job(uri)
    retry = retry_job(job, request, overrides=overrides)
    if retry.revision is None:
        click.echo(f"nothing to retry: {retry.why}")
        return
    click.echo(f"retrying {len(retry.revision.shards)} shards: {retry.why}", err=True)
    run_to_its_end(ctx, planned_again(job, retry.job), retry.job, take_over=take_over)
