"""`spotbatch inspect`."""

import json
from itertools import islice

import click

from jobs.cli.options import job_uri_argument, json_option, shards_option


@click.command("inspect")
@job_uri_argument
@click.option(
    "-n",
    "--number",
    default=5,
    show_default=True,
    type=click.IntRange(min=1),
    help="Samples to print.",
)
@click.option("--errors", is_flag=True, help="Only error rows.")
@click.option("--finish-reason", type=click.Choice(["stop", "length"]), help="Only samples of it.")
@click.option("--id", "ids", metavar="ID", multiple=True, help="Only this row; repeatable.")
@shards_option
@json_option
def command(
    uri: str,
    *,
    number: int,
    errors: bool,
    finish_reason: str | None,
    ids: tuple[str, ...],
    shards: str | None,
    as_json: bool,
) -> None:
    """Look at single samples: prompt, text or error, and what they cost.

    Only committed samples are there to be seen, in input order. With --json, one object a line.
    """
    from jobs.inspecting import Choice, inspect_samples
    from jobs.reading import open_job
    from jobs.shard_ranges import parse_ranges

    choice = Choice(
        errors=errors,
        finish_reason=finish_reason,
        ids=set(ids) or None,
        shards=None if shards is None else set(parse_ranges(shards)),
    )
    for sample in islice(inspect_samples(open_job(uri), choice), number):
        if as_json:
            click.echo(json.dumps(sample.to_json(), ensure_ascii=False))
        else:
            click.echo("\n".join(sample.lines()))
