"""`spotbatch drafter train | eval`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from jobs.cli.drafter_options import plots_option, require_plots

if TYPE_CHECKING:
    from jobs.training import Evaluation

_directory = click.Path(path_type=Path)
_data_option = click.option(
    "--data",
    required=True,
    multiple=True,
    type=_directory,
    help="Directory of trajectories; repeatable, to join collections of one target and rule.",
)


@click.command("train")
@_data_option
@click.option("--out", required=True, type=_directory, help="Directory for the drafter.")
@click.option(
    "--kind",
    type=click.Choice(["order", "sets"]),
    default="order",
    show_default=True,
    help="`order` for the strict rule, `sets` for the threshold rule.",
)
@click.option(
    "--steps",
    default=4000,
    show_default=True,
    type=click.IntRange(min=2),
    help="Training steps.",
)
@click.option("--batch", default=256, show_default=True, help="Examples per step.")
@click.option("--learning-rate", default=1e-3, show_default=True, help="Peak learning rate.")
@click.option("--max-depth", default=24, show_default=True, help="Transitions behind a root.")
@click.option("--seed", default=0, show_default=True, help="Seed of weights and examples.")
@click.option("--width", default=128, show_default=True, help="Model width.")
@click.option("--layers", default=3, show_default=True, help="Encoder layers.")
@click.option("--heads", default=8, show_default=True, help="Attention heads.")
@click.option("--feedforward", default=512, show_default=True, help="Feed-forward width.")
@click.option("--threads", default=2, show_default=True, help="CPU threads.")
@click.option("--save-every", default=500, show_default=True, help="Steps between checkpoints.")
@click.option("--force", is_flag=True, help="Train again what is finished, or begun otherwise.")
@plots_option
def train_command(
    data: tuple[Path, ...],
    out: Path,
    kind: Literal["order", "sets"],
    steps: int,
    batch: int,
    learning_rate: float,
    max_depth: int,
    seed: int,
    width: int,
    layers: int,
    heads: int,
    feedforward: int,
    threads: int,
    save_every: int,
    force: bool,
    plots: Path | None,
) -> None:
    """Train a drafter; every tenth row is held out and measured at the end.

    Interrupted, the same command goes on from the last checkpoint, to the same weights. The default
    sizes are those for real targets (0.62 million parameters).
    """
    from jobs.training import Progress, Training, is_finished, train
    from spot.drafters.checkpoint import OrderModelShape
    from spot.numerics import set_threads
    from spot.training.train import TrainSettings

    require_plots(plots)
    if is_finished(out) and not force:
        click.echo(f"{out} holds a finished drafter; --force trains it again", err=True)
        return
    set_threads(threads)
    training = Training(
        data=data,
        out=out,
        kind=kind,
        shape=OrderModelShape(width=width, layers=layers, heads=heads, feedforward=feedforward),
        settings=TrainSettings(
            steps=steps, batch=batch, learning_rate=learning_rate, max_depth=max_depth, seed=seed
        ),
        save_every=save_every,
        force=force,
    )
    progress = Progress(steps)
    found = train(
        training, report=lambda step, loss: click.echo(progress.line(step, loss), err=True)
    )
    _show(found, plots)


@click.command("eval")
@_data_option
@click.option("--drafter", required=True, type=_directory, help="Directory of the drafter.")
@click.option("--all-samples", is_flag=True, help="Use all samples, not the held-out tenth.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@plots_option
def eval_command(
    data: tuple[Path, ...], drafter: Path, all_samples: bool, as_json: bool, plots: Path | None
) -> None:
    """Accuracy by depth, beside what stale confidence alone would say.

    On trajectories of another target, it says how well the drafter transfers.
    """
    from jobs.training import evaluate_drafter

    require_plots(plots)
    found = evaluate_drafter(data, drafter, all_samples=all_samples)
    if as_json:
        click.echo(json.dumps(found.rows, indent=2))
    else:
        _show(found, plots)


def _show(found: "Evaluation", plots: Path | None) -> None:
    from jobs.tables import table_lines

    click.echo("\n".join(table_lines([*found.rows, found.mean])))
    if plots is not None:
        from spot.training.plots import plot_reliability

        path = plots / "calibration.svg"
        plot_reliability(found.reliability.rows(), path, name="probability")
        click.echo(f"figure: {path}", err=True)
