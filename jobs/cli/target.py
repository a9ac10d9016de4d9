"""`spotbatch target inspect`."""

from pathlib import Path
from typing import Any, get_args

import click

from jobs.cli.options import json_option, print_json
from spot.targets.family import DtypeName

EXIT_FAILED = 1


@click.group("target")
def command() -> None:
    """Look at target models."""


@command.command("inspect")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--block-length", type=click.IntRange(min=1), help="Where the checkpoint does not say."
)
@click.option(
    "--dtype",
    type=click.Choice(get_args(DtypeName)),
    default="float32",
    show_default=True,
    help="What to compute in.",
)
@click.option("--device", default="cpu", show_default=True, help="Where to compute: cpu or cuda.")
@click.option(
    "--numerics",
    type=click.Choice(("invariant", "fast")),
    default="invariant",
    show_default=True,
    help="As decode.numerics.",
)
@click.option("--text", help="What to check on; it should be like the model's training text.")
@click.option("--no-check", is_flag=True, help="Print the values only; no weight is read.")
@json_option
@click.pass_context
def inspect_command(
    ctx: click.Context,
    /,
    directory: Path,
    *,
    text: str | None,
    no_check: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Print everything that decoding would use of a model directory, and check it.

    Loads the weights, and compares a state among others with the state alone, cached with uncached
    keys and values, and both alignments of the logits on a text. Exit code 1 if a check fails.
    """
    from jobs.targets import TEXT, inspect_target

    inspection = inspect_target(directory, text=text or TEXT, check=not no_check, **options)
    if as_json:
        print_json(inspection.to_json())
    else:
        click.echo("\n".join(inspection.lines()))
    if not inspection.passed:
        ctx.exit(EXIT_FAILED)
