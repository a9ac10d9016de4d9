"""`spotbatch list`."""

from typing import Any

import click

from jobs.cli.options import json_option, print_json

_COLUMNS = ("job", "state", "shards", "rows", "errors", "updated", "uri")


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

    rows = [_row(uri) for uri in find_jobs(root)]
    if as_json:
        print_json({"jobs": rows})
    elif not rows:
        click.echo(f"{root}: no job here", err=True)
    else:
        click.echo("\n".join(table_lines([{name: row[name] for name in _COLUMNS} for row in rows])))


def _row(uri: str) -> dict[str, Any]:
    from datetime import UTC, datetime

    from jobs.reading import open_job
    from jobs.status import read_status
    from manifests.errors import ManifestError

    try:
        status = read_status(open_job(uri), now=datetime.now(UTC))
    except ManifestError as error:
        blank = dict.fromkeys(_COLUMNS)
        return blank | {"state": "damaged", "uri": uri, "problem": str(error)}
    return {
        "job": status.job,
        "state": status.state,
        "shards": f"{status.shards}/{status.shards_total}",
        "rows": f"{status.rows}/{status.rows_total}",
        "errors": status.errors,
        "updated": status.updated,
        "uri": uri,
        "problem": None,
    }
