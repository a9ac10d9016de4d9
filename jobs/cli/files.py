"""`spotbatch files`."""

import click

from jobs.cli.options import job_uri_argument


@click.command("files")
@job_uri_argument
@click.option("--absolute", is_flag=True, help="Print whole paths, not keys in the job.")
def command(uri: str, *, absolute: bool) -> None:
    """Print the committed data files, one a line, in input order."""
    from jobs.reading import open_job, read_committed

    job = open_job(uri)
    records = read_committed(job).records
    for shard in sorted(records):
        key = records[shard].data_key
        click.echo(f"{job.store.uri}/{key}" if absolute else key)
