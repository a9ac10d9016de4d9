"""`spotbatch run`."""

from typing import TYPE_CHECKING

import click

from jobs.cli.options import job_arguments, warn

if TYPE_CHECKING:
    from jobs.driver import RunResult
    from jobs.planning import PlannedJob
    from jobs.reading import OpenJob
    from jobs.stats import JobStats
    from manifests.job import JobSpec

EXIT_FAILURES = 1


@click.command("run")
@job_arguments
@click.pass_context
def command(ctx: click.Context, reference: str, overrides: tuple[str, ...]) -> None:
    """Plan a job unless it is planned, run it to its end and print what came of it.

    JOB is a job file, or the directory or URI of a planned job, which needs neither the file nor
    the input any more. Run again, it goes on with what is missing; a complete job is only reported.
    """
    from jobs.resuming import planned_and_job

    planned, job = planned_and_job(reference, overrides)
    warn(planned.warnings)
    run_to_its_end(ctx, planned, job)


def run_to_its_end(ctx: click.Context, planned: "PlannedJob", job: "JobSpec") -> None:
    """Run what the job has open, print what came of it and leave with the exit code."""
    from jobs.progress import open_progress
    from jobs.reading import OpenJob
    from jobs.running import failed_too_often, run_planned
    from jobs.stats import job_stats

    with open_progress() as progress:
        result = run_planned(planned, job, progress=progress)
    _tell(result, uri=planned.store.uri)
    if result.outcome == "cancelled":  # whoever asks twice wants to leave
        ctx.exit(result.exit_code)
    stored = OpenJob(store=planned.store, plan=planned.plan)
    stats = job_stats(stored, scorer=job.stats.scorer)
    _report(stored, stats, result=result)
    if result.exit_code == 0 and failed_too_often(stats):
        click.echo(f"{stats.errors} of {stats.samples} samples are errors", err=True)
        ctx.exit(EXIT_FAILURES)
    ctx.exit(result.exit_code)


def _tell(result: "RunResult", *, uri: str) -> None:
    """How the run ended, on stderr."""
    for shard, reason in sorted(result.given_up.items()):
        click.echo(f"shard {shard} was given up: {reason}", err=True)
    if result.outcome in ("drained", "cancelled", "failed"):
        click.echo(
            f"{result.outcome}: {result.num_committed} of {result.num_shards} shards are committed "
            f"in {uri}; the same command goes on with the others",
            err=True,
        )


def _report(stored: "OpenJob", stats: "JobStats", *, result: "RunResult") -> None:
    """The table and a few samples, on stdout."""
    from jobs.report_table import examples, format_example, format_lines, report_lines

    if result.outcome == "complete":
        click.echo(f"job {stats.job} is complete already; nothing was decoded")
    click.echo(format_lines(report_lines(stats, uri=stored.store.uri)))
    for example in examples(stored):
        click.echo(format_example(example))
