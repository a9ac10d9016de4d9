"""`spotbatch gc`."""

from typing import TYPE_CHECKING

import click

from jobs.cli.options import job_uri_argument

if TYPE_CHECKING:
    from manifests.store import Store

TEMPORARY_AGE_S = 3600.0


@click.command("gc")
@job_uri_argument
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
@click.option(
    "--superseded",
    is_flag=True,
    help="Delete files as well that only earlier seals name; readers of those lose them.",
)
def command(uri: str, *, dry_run: bool, superseded: bool) -> None:
    """Delete what nobody can need any more of a job that has been complete, and print the keys.

    Data files that no seal names are left by attempts that came second or died, staged files by
    extensions that came second, announced rows and requests by drivers that have ended; temporary
    files without a writer go as well. Plan, records, seals and failures stay. It may be run at any
    time, beside a running job too.
    """
    from jobs.reading import open_job
    from manifests.garbage import delete_all, find_garbage

    job = open_job(uri)
    keys = find_garbage(job.store, job.plan, superseded=superseded)
    if not dry_run:
        delete_all(job.store, keys)
        _sweep(job.store)
    for key in keys:
        click.echo(key)
    click.echo(f"{len(keys)} files {'would be' if dry_run else 'were'} deleted", err=True)


def _sweep(store: "Store") -> None:
    """Temporary files of killed processes; S3 has none, only uploads that a bucket rule ends."""
    import time
    from pathlib import Path

    from manifests.store import LocalStore
    from manifests.store.sweeping import sweep_temporaries

    if isinstance(store, LocalStore):
        sweep_temporaries(Path(store.uri), before=time.time() - TEMPORARY_AGE_S)
