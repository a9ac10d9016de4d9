"""Options that the drafter's verbs share."""

from pathlib import Path

import click

from jobs.errors import JobError

samples_option = click.option(
    "--samples", default=50, show_default=True, type=click.IntRange(min=1), help="Rows to decode."
)
held_out_option = click.option(
    "--held-out",
    is_flag=True,
    help="Only every tenth row: those that training on a collection of this job holds out.",
)
plots_option = click.option(
    "--plots", type=click.Path(path_type=Path), help="Directory for figures (needs matplotlib)."
)


def require_plots(plots: Path | None) -> None:
    """Complain before any work if figures are wanted that cannot be drawn."""
    if plots is None:
        return
    from spot.training.plots import PlotsMissingError, require_plots

    try:
        require_plots()
    except PlotsMissingError as error:
        raise JobError(str(error)) from error
