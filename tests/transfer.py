"""How many forwards an order model saves for targets that it was not trained on.

``python -m tests.transfer`` decodes random checkpoints of every family with the bundled order
model, which only saw trajectories of the bundled target, and prints a table. Every drafted sample
is compared with its draft-free one, commit by commit.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from spot.canvas_decoder import CanvasDecoder
from spot.decoder import ReferenceDecoder
from spot.drafters.spot import SpotDrafter
from spot.limits import Limits
from spot.rounds import Sample
from spot.targets.canvas import NativeCanvasTarget
from spot.targets.paged import PagedTarget
from spot.targets.registry import load_target
from spot.trajectory import Decoded
from spot.transition import Rule
from tests.checkpoints import FAMILY_NAMES, LENGTH, FamilyName, write_released

DRAFTER = Path(__file__).parents[1] / "examples" / "tiny" / "drafter"
BUDGET = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One family at one temperature, summed over the samples."""

    family: FamilyName
    temperature: float
    transitions: int
    nfe: int
    identical: bool


def samples(num: int, *, max_tokens: int) -> list[Sample]:
    """Prompts of different lengths, none of them a whole number of blocks."""
    return [
        Sample(
            prompt_ids=tuple(np.random.default_rng(i).integers(0, 256, 5 + 3 * i).tolist()),
            key=i + 1,
            limits=Limits(prompt_tokens=5 + 3 * i, max_tokens=max_tokens),
        )
        for i in range(num)
    ]


def decode(
    target: PagedTarget | NativeCanvasTarget,
    sample: Sample,
    *,
    rule: Rule,
    drafter: SpotDrafter | None = None,
) -> Decoded:
    """By the family's reference decoder."""
    budget = 0 if drafter is None else BUDGET
    if isinstance(target, PagedTarget):
        return ReferenceDecoder(target, rule=rule, drafter=drafter, budget=budget).decode(sample)
    return CanvasDecoder(
        target, rule=rule, context="prefix+suffix", drafter=drafter, budget=budget
    ).decode(sample)


def measure(
    family: FamilyName, directory: Path, *, num_samples: int, max_tokens: int
) -> Iterator[Row]:
    """Both temperatures of one family."""
    length = None if family in ("sdar", "llada2") else LENGTH
    target = load_target(write_released(family, directory), block_length=length)
    for temperature in (0.0, 1.0):
        rule = Rule(temperature=temperature)
        drafter = SpotDrafter.load(DRAFTER, rule=rule, mask_id=target.spec.mask_id)
        nfe = transitions = 0
        identical = True
        for sample in samples(num_samples, max_tokens=max_tokens):
            free = decode(target, sample, rule=rule)
            drafted = decode(target, sample, rule=rule, drafter=drafter)
            identical &= drafted.token_ids == free.token_ids
            identical &= drafted.trajectory.moves == free.trajectory.moves
            nfe += drafted.trajectory.cost.nfe
            transitions += free.trajectory.cost.nfe
        yield Row(
            family=family,
            temperature=temperature,
            transitions=transitions,
            nfe=nfe,
            identical=identical,
        )


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print(
        "| target | T | NFE draft-free | NFE drafted | reduction | identical |\n" + "|---" * 6 + "|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for family in FAMILY_NAMES:
            for row in measure(family, Path(folder) / family, num_samples=6, max_tokens=48):
                print(
                    f"| {family} | {row.temperature:g} | {row.transitions} | {row.nfe} "
                    f"| {row.transitions / row.nfe:.2f}x | {'yes' if row.identical else 'NO'} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
