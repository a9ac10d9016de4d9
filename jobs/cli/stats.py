"""`spotbatch stats`."""

from typing import TYPE_CHECKING

import click

from jobs.cli.options import job_uri_argument, json_option, print_json, scorer_options

if TYPE_CHECKING:
    from jobs.reading import OpenJob


def chosen_scorer(job: "OpenJob", scorer: str | None, *, no_score: bool) -> str | None:
    """The scorer of the command line or else of the job, or None."""
    if scorer and no_score:
        raise click.UsageError("--scorer and --no-score contradict each other; give one of them")
    return None if no_score else scorer or job.plan.job.stats.scorer


@click.command("stats")
@job_uri_argument
@json_option
@scorer_options
def command(uri: str, *, as_json: bool, scorer: str | None, no_score: bool) -> None:
    """Add up what a job made and what it cost, from its committed output."""
    from jobs.reading import open_job
    from jobs.report_table import format_lines, report_lines
    from jobs.stats import job_stats

    job = open_job(uri)
    stats = job_stats(job, scorer=chosen_scorer(job, scorer, no_score=no_score))
    if as_json:
        print_json(stats.to_json())
    else:
        click.echo(format_lines(report_lines(stats, uri=job.store.uri)))
