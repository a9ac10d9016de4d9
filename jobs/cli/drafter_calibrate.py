"""`spotbatch drafter calibrate`."""

from pathlib import Path
from typing import Literal

import click

from jobs.cli.drafter_options import held_out_option, samples_option
from jobs.cli.options import job_file_arguments, load
from spot.drafters.spiffy_graph import GRAPH_SIZE, LOOKAHEAD


@click.command("calibrate")
@job_file_arguments
@click.option(
    "--method",
    required=True,
    type=click.Choice(["survival", "gamma", "sets", "spiffy"]),
    help="`survival` of token hypotheses, the mass floor `gamma`, memberships of `sets`, or a "
    "`spiffy` draft graph.",
)
@click.option(
    "--drafter", required=True, type=click.Path(path_type=Path), help="Directory of the drafter."
)
@samples_option
@held_out_option
@click.option(
    "--lookahead", default=LOOKAHEAD, show_default=True, help="Transitions in a spiffy graph."
)
@click.option(
    "--score",
    type=click.Choice(["degree1", "own"]),
    default="degree1",
    show_default=True,
    help="How nodes of a spiffy graph are chosen: by their own and their parents' counts, or by "
    "their own alone, which accepts more.",
)
@click.option("--size", default=GRAPH_SIZE, show_default=True, help="Nodes of a spiffy graph.")
def calibrate_command(
    job_file: Path,
    overrides: tuple[str, ...],
    method: Literal["survival", "gamma", "sets", "spiffy"],
    drafter: Path,
    samples: int,
    held_out: bool,
    lookahead: int,
    size: int,
    score: Literal["degree1", "own"],
) -> None:
    """Fit a drafter's constants on rows of a job that it was not trained on.

    The constants go into the drafter's directory. Interrupted, the same command goes on with what
    is not measured yet. No output depends on any of this.
    """
    from jobs.calibrating import calibrate
    from jobs.measuring import CalibrationRequest
    from jobs.tables import table_lines

    request = CalibrationRequest(
        job=load(job_file, overrides),
        drafter=drafter,
        samples=samples,
        held_out=held_out,
        lookahead=lookahead,
        size=size,
        score=score,
        report=lambda line: click.echo(line, err=True),
    )
    click.echo("\n".join(table_lines(calibrate(method, request))))
