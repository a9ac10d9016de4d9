"""`spotbatch drafter collect | train | eval`."""

import json
from pathlib import Path

import click

from jobs.cli.options import job_file_arguments, load

_directory = click.Path(path_type=Path)


@click.group("drafter")
def command() -> None:
    """Make a drafter for a target: collect trajectories, train, evaluate.

    A drafter can never change an output; a better one only saves forwards.
    """


@command.command("collect")
@job_file_arguments
@click.option("--out", required=True, type=_directory, help="Directory for the trajectories.")
def collect_command(job_file: Path, overrides: tuple[str, ...], out: Path) -> None:
    """Decode the job's prompts without drafts and keep the order of their commits.

    Run again, it goes on with the groups of rows that are missing.
    """
    from jobs.drafting import collect

    job = load(job_file, overrides)

    def report(rows: int, trajectories: int) -> None:
        click.echo(f"{rows} rows, {trajectories} new trajectories", err=True)

    files = collect(job, out, report=report)
    click.echo(f"{files} files in {out}")


@command.command("train")
@click.option("--data", required=True, type=_directory, help="Directory of trajectories.")
@click.option("--out", required=True, type=_directory, help="Directory for the drafter.")
@click.option("--steps", default=4000, show_default=True, help="Training steps.")
@click.option("--batch", default=256, show_default=True, help="Examples per step.")
@click.option("--learning-rate", default=1e-3, show_default=True, help="Peak learning rate.")
@click.option("--seed", default=0, show_default=True, help="Seed of weights and examples.")
@click.option("--width", default=128, show_default=True, help="Model width.")
@click.option("--layers", default=3, show_default=True, help="Encoder layers.")
@click.option("--heads", default=8, show_default=True, help="Attention heads.")
@click.option("--feedforward", default=512, show_default=True, help="Feed-forward width.")
@click.option("--threads", default=2, show_default=True, help="CPU threads.")
def train_command(
    data: Path,
    out: Path,
    steps: int,
    batch: int,
    learning_rate: float,
    seed: int,
    width: int,
    layers: int,
    heads: int,
    feedforward: int,
    threads: int,
) -> None:
    """Train the order model; every tenth sample is held out and measured at the end.

    The default sizes are those for real targets (0.62 million parameters).
    """
    from jobs.drafting import accuracy_lines, collection
    from spot.drafters.checkpoint import DrafterConfig, OrderModelShape
    from spot.drafters.order_model import save_order_model
    from spot.numerics import set_threads
    from spot.training.evaluate import accuracy_by_depth
    from spot.training.train import TrainSettings, split, train_order_model
    from spot.training.trajectories import Trajectories

    said, files = collection(data)
    set_threads(threads)
    training, held_out = split(Trajectories.load(files))
    shape = OrderModelShape(width=width, layers=layers, heads=heads, feedforward=feedforward)
    model = train_order_model(
        training,
        shape=shape,
        settings=TrainSettings(steps=steps, batch=batch, learning_rate=learning_rate, seed=seed),
        report=lambda step, loss: click.echo(f"step {step}: loss {loss:.4f}", err=True),
    )
    config = DrafterConfig(
        shape=shape,
        block_length=said["block_length"],
        target=said["target"],
        data=said["data"],
    )
    save_order_model(model, config, out)
    click.echo("\n".join(accuracy_lines(accuracy_by_depth(model, held_out))))


@command.command("eval")
@click.option("--data", required=True, type=_directory, help="Directory of trajectories.")
@click.option("--drafter", required=True, type=_directory, help="Directory of the drafter.")
@click.option("--all-samples", is_flag=True, help="Use all samples, not the held-out tenth.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def eval_command(data: Path, drafter: Path, all_samples: bool, as_json: bool) -> None:
    """Next-commit accuracy by depth, beside the order of stale confidence."""
    from jobs.drafting import accuracy_lines, collection
    from spot.drafters.order_model import load_order_model
    from spot.training.evaluate import accuracy_by_depth
    from spot.training.train import split
    from spot.training.trajectories import Trajectories

    _, files = collection(data)
    everything = Trajectories.load(files)
    model, _ = load_order_model(drafter)
    rows = accuracy_by_depth(model, everything if all_samples else split(everything)[1])
    if as_json:
        click.echo(json.dumps([row._asdict() for row in rows], indent=2))
    else:
        click.echo("\n".join(accuracy_lines(rows)))
