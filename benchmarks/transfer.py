"""Does an order model that saw one family of tasks draft for the others?

``python -m benchmarks.transfer [--rows N] [--steps N] [--samples N] [--json FILE]`` trains one
order model per family on draft-free trajectories of that family alone, and decodes held-out
prompts of every family with each, and with the bundled drafter, at budget 20 and temperature 0.
Outputs are compared with draft-free decoding in every cell.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

from benchmarks.decode import decode
from benchmarks.settings import DRAFT_FREE, STRICT, Setting
from benchmarks.workload import Loaded, Workload, load, request_of
from examples.tiny.families import FAMILIES
from examples.tiny.splits import Side, problems
from manifests.staged import StagedRow
from spot.drafters.base import Drafter
from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.order_model import OrderModel
from spot.drafters.spot import SpotDrafter
from spot.training.train import TrainSettings, train_order_model
from spot.training.trajectories import Trajectories
from workers.collection import Name, Recorder
from workers.samples import SampleResult

BUDGET = 20
BUNDLED = "bundled"
SHAPE = OrderModelShape(width=64, layers=2, heads=4, feedforward=192)
SETTING = Setting(protocol="early_stop", rule=STRICT, method="spot", budget=BUDGET, samples=0)
FREE = replace(SETTING, method=DRAFT_FREE, budget=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One trained model on one family."""

    trained_on: str
    tested_on: str
    samples: int
    nfe: float
    transitions: float
    reduction: float
    identical: bool


def with_prompts(loaded: Loaded, family: str, side: Side, *, num_rows: int) -> Loaded:
    """The same target with one family's prompts."""
    chosen = islice(problems(side, seed=91, mix=(family,)), num_rows)
    rows = [StagedRow(row=i, id=str(i), prompt=p.prompt) for i, p in enumerate(chosen)]
    return loaded._replace(requests=[request_of(row, loaded.target) for row in rows])


def trajectories_of(loaded: Loaded) -> Trajectories:
    """Draft-free trajectories of all its prompts."""
    recorder = Recorder()
    results = decode(
        loaded, FREE, drafter=None, num_samples=len(loaded.requests), observer=recorder
    )
    rows = [result.request.row for result in results]
    return Trajectories.concatenate([recorder.take(Name(0, r, 0)).numbered(r) for r in rows])


def train_on(loaded: Loaded, family: str, *, num_rows: int, steps: int) -> OrderModel:
    """An order model of one family."""
    data = trajectories_of(with_prompts(loaded, family, "train", num_rows=num_rows))
    settings = TrainSettings(steps=steps, batch=256, learning_rate=3e-3)

    def say(step: int, loss: float) -> None:
        if step % 500 == 0:
            print(f"{family}: step {step} of {steps}, loss {loss:.3f}", file=sys.stderr, flush=True)

    return train_order_model(data, shape=SHAPE, settings=settings, report=say)


def measure(
    loaded: Loaded, drafters: dict[str, Drafter], family: str, *, samples: int
) -> Iterator[Cell]:
    """All drafters on one family."""
    mine = with_prompts(loaded, family, "held_out", num_rows=samples)
    control = decode(mine, FREE, drafter=None, num_samples=samples)
    for name, drafter in drafters.items():
        results = decode(mine, SETTING, drafter=drafter, num_samples=samples)
        yield _cell(results, control, trained_on=name, tested_on=family)


def _cell(
    results: list[SampleResult], control: list[SampleResult], *, trained_on: str, tested_on: str
) -> Cell:
    num, nfe = len(results), sum(r.nfe for r in results)
    transitions = sum(r.transitions for r in results)
    return Cell(
        trained_on=trained_on,
        tested_on=tested_on,
        samples=num,
        nfe=nfe / num,
        transitions=transitions / num,
        reduction=transitions / nfe,
        identical=[r.trace for r in results] == [r.trace for r in control],
    )


def lines(cells: Sequence[Cell]) -> list[str]:
    """A markdown table: trained on (rows) by tested on (columns)."""
    families = list(dict.fromkeys(cell.tested_on for cell in cells))
    found = {(cell.trained_on, cell.tested_on): cell for cell in cells}
    table = [f"| trained on | {' | '.join(families)} |", "|---|" + "---|" * len(families)]
    for name in dict.fromkeys(cell.trained_on for cell in cells):
        row = [found[name, family] for family in families]
        table.append(
            f"| {name} | " + " | ".join(f"{c.nfe:.1f} ({c.reduction:.2f}x)" for c in row) + " |"
        )
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, measure and print; 1 if an output differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transfer", description=__doc__)
    parser.add_argument("--rows", type=int, default=240, help="training prompts of each family")
    parser.add_argument("--steps", type=int, default=2000, help="training steps of each model")
    parser.add_argument("--samples", type=int, default=12, help="held-out prompts of each family")
    parser.add_argument("--json", type=Path, help="write the cells here")
    options = parser.parse_args(arguments)
    workload = Workload(num_prompts=1)
    loaded = load(workload)
    mask_id = loaded.target.spec.mask_id
    drafters: dict[str, Drafter] = {
        family: SpotDrafter(
            train_on(loaded, family, num_rows=options.rows, steps=options.steps),
            rule=STRICT,
            mask_id=mask_id,
        )
        for family in FAMILIES
    }
    drafters[BUNDLED] = SpotDrafter.load(workload.drafter, rule=STRICT, mask_id=mask_id)
    cells = [
        cell
        for family in FAMILIES
        for cell in measure(loaded, drafters, family, samples=options.samples)
    ]
    print("\n".join(lines(cells)))
    if options.json:
        text = json.dumps([asdict(cell) for cell in cells], indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0 if all(cell.identical for cell in cells) else 1


if __name__ == "__main__":
    sys.exit(main())
