"""`spotbatch files`."""

import click

from jobs.cli.options import job_uri_argument


@click.command("files")
@job_uri_argument
@click.option("--absolute", is_flag=True, help="Print whole paths, not keys in the job.")
def command(uri: str, *, absolute: bool) -> None:
    """Print the data files of a complete job that count, one a line, in input order.

    Everything else in the job's directory was left by attempts that do not count.
    """
    from jobs.reading import open_job, require_seal

    job = open_job(uri)
    for sealed in require_seal(job).shards:
        key = sealed.data_key
        click.echo(f"{job.store.uri}/{key}" if absolute else key)
