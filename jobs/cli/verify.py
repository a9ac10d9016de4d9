"""`spotbatch verify`."""

import click

from jobs.cli.options import job_uri_argument, json_option, print_json

EXIT_FINDINGS = 1


@click.command("verify")
@job_uri_argument
@click.option(
    "--replay",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Decode N samples again without drafts and compare them; loads the target.",
)
@click.option(
    "--seed", metavar="S", type=int, default=0, show_default=True, help="Chooses the samples."
)
@json_option
@click.pass_context
def command(ctx: click.Context, uri: str, *, replay: int, seed: int, as_json: bool) -> None:
    """Check every record of a job against its plan and files. Exit code 1 if anything is wrong."""
    from jobs.reading import open_job
    from jobs.verify import verify_job, without_plan
    from manifests.errors import DamagedError

    try:
        job = open_job(uri)
    except DamagedError as error:
        verification = without_plan(error)
    else:
        verification = verify_job(job, replay=replay, seed=seed)
    if as_json:
        print_json(verification.to_json())
    else:
        for line in verification.lines():
            click.echo(line)
    if not verification.passed:
        ctx.exit(EXIT_FINDINGS)
