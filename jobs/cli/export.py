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
@json_option
def command(uri: str, destination: str, *, rows_per_file: int | None, as_json: bool) -> None:
    """Copy the output of a complete job to an empty place, as one or a few Parquet files.

    _SUCCESS.json comes last and lists the files. Interrupted, the same command goes on. Nothing is
    overwritten.
    """
    from jobs.exporting import export_job
    from jobs.reading import open_job
    from manifests.store import open_store

    store = open_store(destination)
    result = export_job(open_job(uri), store, rows_per_file=rows_per_file)
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
