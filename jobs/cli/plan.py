"""`spotbatch plan`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.cli.options import job_file_arguments, json_option, load, print_json, warn

if TYPE_CHECKING:
    from jobs.estimates import Estimate
    from manifests.job import JobSpec


@click.command("plan")
@job_file_arguments
@click.option("--write", is_flag=True, help="Create the plan, so that `run` can follow.")
@click.option(
    "--measure",
    metavar="N",
    type=click.IntRange(min=1),
    help="Decode N rows in this process and say what the job will take; loads the target.",
)
@json_option
def command(
    job_file: Path, overrides: tuple[str, ...], *, write: bool, measure: int | None, as_json: bool
) -> None:
    """Read the input, cut it into shards and print what a run would do.

    Shows the first filled prompt and the most tokens that can come; with --measure, or where the
    job has committed shards already, also what to expect of time and tokens.
    """
    from jobs.planning import plan_job, preview_job
    from jobs.preview import (
        num_samples_to_decode,
        plan_json,
        plan_lines,
        preview_json,
        preview_lines,
    )
    from jobs.report_table import format_lines

    job = load(job_file, overrides)
    if write:
        planned = plan_job(job)
        warn(planned.warnings)
        samples = planned.plan.rows * job.sampling.n
        expected = _expected(job, samples=samples, measure=measure)
        values, lines = (
            plan_json(planned, expected=expected),
            plan_lines(planned, expected=expected),
        )
    else:
        preview = preview_job(job)
        warn(preview.models.warnings)
        expected = _expected(job, samples=num_samples_to_decode(job, preview), measure=measure)
        values = preview_json(job, preview, expected=expected)
        lines = preview_lines(job, preview, expected=expected)
    if as_json:
        print_json(values)
    else:
        click.echo(format_lines(lines))


def _expected(job: "JobSpec", *, samples: int, measure: int | None) -> "Estimate | None":
    from jobs.estimates import estimate, rate_of_records

    if measure is not None:
        from jobs.rehearsing import rehearse

        rate = rehearse(job, num_rows=measure).rate()
        return estimate(rate, num_samples=samples, num_workers=job.cluster.workers)
    from jobs.errors import NoJobError
    from jobs.reading import open_job, read_committed

    try:
        records = list(read_committed(open_job(job.output.uri)).records.values())
    except NoJobError:
        return None
    rate = rate_of_records(records)
    left = max(0, samples - rate.samples)
    return estimate(rate, num_samples=left, num_workers=job.cluster.workers)
