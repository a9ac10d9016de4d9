"""`spotbatch submit`."""

import os

import click

from jobs.cli.options import address_option, job_arguments, warn


@click.command("submit")
@job_arguments
@address_option
@click.option(
    "--wait/--no-wait", help="Pass on what the driver says and end with its exit code, or return."
)
@click.option(
    "--dry-run", is_flag=True, help="Plan, print Ray's equivalent command and submit nothing."
)
@click.pass_context
def command(
    ctx: click.Context,
    reference: str,
    overrides: tuple[str, ...],
    *,
    address: str | None,
    wait: bool,
    dry_run: bool,
) -> None:
    """Run a job on a Ray cluster, through its job server; prints the submission id.

    The job is planned here, so output.uri must be reachable from here and from the cluster. Twice
    is once: a driver that is running is attached to, and a complete job is left alone. Where the
    cluster wants a token, Ray's own variables hold it (RAY_AUTH_MODE, RAY_AUTH_TOKEN).
    """
    from jobs.resuming import planned_and_job
    from jobs.submission import entrypoint_of_run, is_complete, submit_planned
    from jobs.submitting import by_hand, is_exposed, next_submission
    from jobs.submitting_client import connect

    planned, job = planned_and_job(reference, overrides, environment=os.environ)
    warn(planned.warnings)
    job_id = planned.plan.job_id
    if is_complete(planned):
        click.echo(f"job {job_id} is complete; nothing is submitted", err=True)
        return
    server = connect(address)
    if is_exposed(server.address, environment=os.environ):
        warn((f"{server.address} is used without a token; whoever reaches it runs commands there",))
    if dry_run:
        entrypoint = entrypoint_of_run(planned, job)
        wanted = next_submission(server.statuses(), job_id=job_id, entrypoint=entrypoint)
        click.echo(by_hand(server.address, wanted))
        return
    submission = submit_planned(planned, job, server=server)
    click.echo(submission.id)
    if submission.is_new:
        click.echo(f"by hand: {by_hand(server.address, submission)}", err=True)
    else:
        click.echo("a driver of this job is running already; nothing is started", err=True)
    if wait:
        ctx.exit(server.wait(submission.id, say=lambda text: click.echo(text, nl=False, err=True)))
