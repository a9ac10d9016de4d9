"""`spotbatch stats`."""

import click

from jobs.cli.options import job_uri_argument, json_option, print_json


@click.command("stats")
@job_uri_argument
@json_option
@click.option("--scorer", metavar="MODULE:FUNCTION", help="Score with this, not stats.scorer.")
@click.option("--no-score", is_flag=True, help="Leave accuracy out.")
def command(uri: str, *, as_json: bool, scorer: str | None, no_score: bool) -> None:
    """Add up what a job made and what it cost, from its committed output."""
    from jobs.reading import open_job
    from jobs.report_table import format_lines, report_lines
    from jobs.stats import job_stats

    if scorer and no_score:
        raise click.UsageError("--scorer and --no-score contradict each other; give one of them")
    job = open_job(uri)
    chosen = None if no_score else scorer or job.plan.job.stats.scorer
    stats = job_stats(job, scorer=chosen)
    if as_json:
        print_json(stats.to_json())
    else:
        click.echo(format_lines(report_lines(stats, uri=job.store.uri)))
