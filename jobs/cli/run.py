"""`spotbatch run`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.cli.options import job_arguments, load, warn

if TYPE_CHECKING:
    from jobs.driver import RunResult
    from jobs.planning import PlannedJob
    from jobs.reading import OpenJob
    from jobs.stats import JobStats
    from manifests.job import JobSpec

EXIT_FAILURES = 1


@click.command("run")
@job_arguments
@click.option(
    "--preview",
    metavar="N",
    type=click.IntRange(min=1),
    help="Decode N rows in this process, print them and what the job will take, and do no more.",
)
@click.option(
    "--stop-after",
    metavar="TIME",
    help="Drain after this time, as in 3h50m, to be continued by another run (exit code 3).",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="End a driver that runs this job already, instead of leaving with code 2.",
)
@click.pass_context
def command(
    ctx: click.Context,
    reference: str,
    overrides: tuple[str, ...],
    preview: int | None = None,
    stop_after: str | None = None,
    take_over: bool = False,
) -> None:
    """Plan a job unless it is planned, run it to its end and print what came of it.

    JOB is a job file, or the directory or URI of a planned job, which needs neither the file nor
    the input any more. Run again, it goes on with what is missing; a complete job is only reported.
    """
    from jobs.durations import parse_duration
    from jobs.resuming import planned_and_job

    time_s = None if stop_after is None else parse_duration(stop_after)
    if preview is not None:
        show_preview(reference, overrides, num_rows=preview)
        return
    planned, job = planned_and_job(reference, overrides, environment=os.environ)
    warn(planned.warnings)
    run_to_its_end(ctx, planned, job, time_s=time_s, take_over=take_over)


def run_to_its_end(
    ctx: click.Context,
    planned: "PlannedJob",
    job: "JobSpec",
    *,
    time_s: float | None = None,
    take_over: bool = False,
) -> None:
    """Run what the job has open, print what came of it and leave with the exit code.

    Whom the job wants told is told of every end, also of one by an error.
    """
    from jobs.cli.group import EXIT_USAGE
    from jobs.errors import JobError
    from manifests.errors import ManifestError

    try:
        result, exit_code = _run(planned, job, time_s=time_s, take_over=take_over)
    except (JobError, ManifestError, OSError):
        _notify(planned, job, outcome="error", exit_code=EXIT_USAGE)
        raise
    _notify(planned, job, outcome=result.outcome, exit_code=exit_code)
    ctx.exit(exit_code)


def _run(
    planned: "PlannedJob", job: "JobSpec", *, time_s: float | None, take_over: bool
) -> "tuple[RunResult, int]":
    from jobs.progress import open_progress
    from jobs.reading import OpenJob
    from jobs.running import failed_too_often, run_planned
    from jobs.stats import job_stats

    with open_progress() as progress:
        result = run_planned(planned, job, progress=progress, time_s=time_s, take_over=take_over)
    _tell(result, uri=planned.store.uri)
    if result.outcome == "cancelled":  # whoever asks twice wants to leave
        return result, result.exit_code
    stored = OpenJob(store=planned.store, plan=planned.plan)
    stats = job_stats(stored, scorer=job.stats.scorer)
    _report(stored, stats, result=result)
    if result.exit_code == 0 and failed_too_often(
        stats, max_error_fraction=job.retry.max_error_fraction
    ):
        click.echo(f"{stats.errors} of {stats.samples} samples are errors", err=True)
        return result, EXIT_FAILURES
    return result, result.exit_code


def _notify(planned: "PlannedJob", job: "JobSpec", *, outcome: str, exit_code: int) -> None:
    from jobs.on_finish import Ended, notify

    if not job.on_finish.command and job.on_finish.webhook is None:
        return
    ended = Ended(
        job=planned.plan.job_id, uri=planned.store.uri, outcome=outcome, exit_code=exit_code
    )
    notify(job.on_finish, ended, say=lambda text: click.echo(text, err=True))


def show_preview(reference: str, overrides: tuple[str, ...], *, num_rows: int) -> None:
    """Print the samples of the first rows, and what the whole job will take."""
    from jobs.estimates import estimate
    from jobs.planning import preview_job
    from jobs.preview import num_samples_to_decode
    from jobs.rehearsing import rehearse
    from jobs.report_table import format_example, format_lines
    from jobs.resuming import is_job_uri

    if is_job_uri(reference):
        raise click.UsageError("--preview takes a job file; a planned job is run as it is")
    job = load(Path(reference), overrides)
    samples = num_samples_to_decode(job, preview_job(job))
    rehearsal = rehearse(job, num_rows=num_rows)
    for example in rehearsal.examples():
        click.echo(format_example(example))
    expected = estimate(rehearsal.rate(), num_samples=samples, num_workers=job.cluster.workers)
    if expected is not None:
        click.echo(format_lines(expected.lines(num_workers=job.cluster.workers)))


def _tell(result: "RunResult", *, uri: str) -> None:
    """How the run ended, on stderr."""
    for shard, reason in sorted(result.given_up.items()):
        click.echo(f"shard {shard} was given up: {reason}", err=True)
    if result.message is not None:
        click.echo(result.message, err=True)
    if result.exit_code != 0:
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
