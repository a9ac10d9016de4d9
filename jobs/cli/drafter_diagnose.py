"""`spotbatch drafter diagnose`."""

import json
from pathlib import Path
from typing import Any

import click

from jobs.cli.drafter_options import (
    held_out_option,
    plots_option,
    require_plots,
    samples_option,
)
from jobs.cli.options import job_file_arguments, load


@click.command("diagnose")
@job_file_arguments
@click.option(
    "--drafter", type=click.Path(path_type=Path), help="Directory instead of the job's drafter."
)
@samples_option
@held_out_option
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="File for all figures.")
@plots_option
def diagnose_command(
    job_file: Path,
    overrides: tuple[str, ...],
    drafter: Path | None,
    samples: int,
    held_out: bool,
    json_file: Path | None,
    plots: Path | None,
) -> None:
    """Decode rows of a job with its drafter, and say where drafts are accepted and why not.

    Nothing of the job is written. A budget of `auto` becomes 20.
    """
    from jobs.diagnosing import Diagnosis, diagnose
    from jobs.partial import write_json

    require_plots(plots)
    if drafter is not None:
        overrides = (*overrides, f"drafter.path={json.dumps(str(drafter))}")
    request = Diagnosis(
        job=load(job_file, overrides),
        samples=samples,
        held_out=held_out,
        report=lambda line: click.echo(line, err=True),
    )
    found = diagnose(request)
    click.echo(_text(found))
    if json_file is not None:
        write_json(json_file, found)
    if plots is not None:
        from spot.training.plots import plot_blocks, plot_reliability

        plot_reliability(found["masses"], plots / "mass_calibration.svg", name="prefix mass")
        plot_blocks(found["blocks"], plots / "accepted_by_block.svg")


def _text(found: dict[str, Any]) -> str:
    from jobs.report_table import format_lines
    from jobs.tables import table_lines

    plain = [(name, value) for name, value in found.items() if not isinstance(value, dict | list)]
    reasons = list(found["first_rejections"].items())
    figures = [(name.replace("_", " "), _figure(value)) for name, value in plain + reasons]
    parts = [
        format_lines(figures),
        "\n".join(table_lines(found["blocks"])),
        "\n".join(table_lines(found["masses"])),
    ]
    return "\n\n".join(parts)


def _figure(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
