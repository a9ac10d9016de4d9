"""`spotbatch export`."""

import click

from jobs.cli.options import job_uri_argument, json_option, print_json


@click.command("export")
@job_uri_argument
@click.argument("destination", metavar="DESTINATION")
@click.option(
    "--rows-per-file",
    metavar="N",
    type=click.IntRange(min=1),
    help="End a file with the shard that reaches N output rows. [default: one file]",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["parquet", "openai"]),
    default="parquet",
    show_default=True,
    help="`openai`: a line of JSON per row as OpenAI's Batch API writes it, and a file of errors.",
)
@json_option
def command(
    uri: str, destination: str, *, rows_per_file: int | None, format_: str, as_json: bool
) -> None:
    """Copy the output of a complete job to an empty place, as one or a few files.

    _SUCCESS.json comes last and lists the files. Interrupted, the same command goes on. Nothing is
    overwritten.
    """
    from jobs.exporting import export_job
    from jobs.outputs.exporting import export_openai
    from jobs.reading import open_job
    from manifests.store import open_store

    if format_ == "openai" and rows_per_file is not None:
        raise click.UsageError("--rows-per-file has no effect with --format openai; remove it")
    store = open_store(destination)
    job = open_job(uri)
    if format_ == "openai":
        result = export_openai(job, store)
    else:
        result = export_job(job, store, rows_per_file=rows_per_file)
    if as_json:
        print_json(result.export.model_dump(mode="json"))
        return
    for file in result.export.files:
        click.echo(f"{store.uri}/{file.key}")
    click.echo(
        f"{result.export.rows} rows in {len(result.export.files)} files, "
        f"{result.num_written} of them written now",
        err=True,
    )
