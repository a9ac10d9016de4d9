"""`spotbatch plan`."""

from pathlib import Path

import click

from jobs.cli.options import job_file_arguments, load, warn


@click.command("plan")
@job_file_arguments
@click.option("--write", is_flag=True, help="Create the plan, so that `run` can follow.")
def command(job_file: Path, overrides: tuple[str, ...], *, write: bool) -> None:
    """Read the input, cut it into shards and print what a run would do."""
    from jobs.planning import plan_job, preview_job
    from jobs.preview import plan_lines, preview_lines
    from jobs.report_table import format_lines

    job = load(job_file, overrides)
    if write:
        planned = plan_job(job)
        warn(planned.warnings)
        click.echo(format_lines(plan_lines(planned)))
    else:
        preview = preview_job(job)
        warn(preview.models.warnings)
        click.echo(format_lines(preview_lines(job, preview)))
