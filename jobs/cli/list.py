"""`spotbatch list`."""

from typing import Any

import click

from jobs.cli.options import json_option, print_json

_FIGURES = ("job", "state", "shards", "shards_total", "rows", "rows_total", "errors", "updated")


@click.command("list")
@click.argument("root", metavar="ROOT", default=".")
@json_option
def command(root: str, *, as_json: bool) -> None:
    """List the jobs at or below ROOT (default: the current directory) and where they stand.

    ROOT is a directory or an s3:// prefix; no cluster is asked. A job that cannot be read is listed
    with what is wrong with it.
    """
    from jobs.finding import find_jobs
    from jobs.tables import table_lines

    jobs = [_job(uri) for uri in find_jobs(root)]
    if as_json:
        print_json({"jobs": jobs})
    elif not jobs:
        click.echo(f"{root}: no job here", err=True)
    else:
        click.echo("\n".join(table_lines([_row(job) for job in jobs])))


def _job(uri: str) -> dict[str, Any]:
    from datetime import UTC, datetime

    from jobs.reading import open_job
    from jobs.status import read_status
    from manifests.errors import ManifestError

    try:
        status = read_status(open_job(uri), now=datetime.now(UTC))
    except ManifestError as error:
        return dict.fromkeys(_FIGURES) | {"state": "damaged", "uri": uri, "problem": str(error)}
    return {name: getattr(status, name) for name in _FIGURES} | {"uri": uri, "problem": None}


def _row(job: dict[str, Any]) -> dict[str, Any]:
    return {
        "job": job["job"],
        "state": job["state"],
        "shards": _of(job["shards"], job["shards_total"]),
        "rows": _of(job["rows"], job["rows_total"]),
        "errors": job["errors"],
        "updated": job["updated"],
        "uri": job["uri"],
    }


def _of(done: int | None, total: int | None) -> str | None:
    return None if total is None else f"{done}/{total}"
