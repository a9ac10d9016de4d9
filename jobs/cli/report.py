"""`spotbatch report`."""

from pathlib import Path

import click

from jobs.cli.options import job_uri_argument, scorer_options


@click.command("report")
@job_uri_argument
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="File to write, or - for stdout.",
)
@scorer_options
def command(uri: str, *, out: Path, scorer: str | None, no_score: bool) -> None:
    """Write a job's report: one HTML page that needs no network.

    What ran under which rule and versions, what is guaranteed, throughput, forwards and seconds per
    sample, who worked when, what failed and why, error rows, the slowest rows, and the cost. Works
    on a running job, too.
    """
    from jobs.cli.stats import chosen_scorer
    from jobs.partial import write_text
    from jobs.reading import open_job
    from jobs.report import report_figures, report_page

    job = open_job(uri)
    page = report_page(report_figures(job, scorer=chosen_scorer(job, scorer, no_score=no_score)))
    if str(out) == "-":
        click.echo(page, nl=False)
        return
    write_text(out, page)
    click.echo(f"report: {out}", err=True)
