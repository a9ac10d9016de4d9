"""Training a drafter on collected trajectories, and measuring it on those held out.

A training that was interrupted goes on where it stopped; one that is finished is left alone.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from jobs.drafting import Collection, collections
from jobs.errors import JobError
from jobs.partial import write_json
from manifests.hashing import sha256_hex
from spot.drafters.checkpoint import (
    CONFIG,
    WEIGHTS,
    DrafterConfig,
    DrafterError,
    Kind,
    OrderModelShape,
    read_config,
    save_drafter,
)
from spot.drafters.order_model import OrderModel, load_order_model
from spot.drafters.set_model import SetModel, load_set_model
from spot.drafters.sets import SetCalibration
from spot.training.calibrate import Reliability
from spot.training.checkpointing import CheckpointError, Checkpoints
from spot.training.evaluate import (
    accuracy_by_depth,
    mean_accuracy,
    mean_set_accuracy,
    set_accuracy_by_depth,
)
from spot.training.train import TrainSettings, train_order_model, train_set_model
from spot.training.trajectories import Trajectories

UNFINISHED = "training"
REPORT = "training.json"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What to train, and where."""

    data: tuple[Path, ...]
    out: Path
    kind: Kind
    shape: OrderModelShape
    settings: TrainSettings
    save_every: int = 500  # steps
    force: bool = False  # train again what is finished, or unfinished with other settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Held-out accuracy by depth, and how well the model's own probabilities fit."""

    rows: list[Row]
    mean: Row  # over all examples
    reliability: Reliability


def is_finished(out: Path) -> bool:
    """Whether a directory holds a drafter whose training is complete."""
    files = all((out / name).is_file() for name in (CONFIG, WEIGHTS))
    return files and not (out / UNFINISHED).is_dir()


def train(training: Training, *, report: Callable[[int, float], None]) -> Evaluation:
    """Train, write the drafter and ``training.json``; whatever the directory held is replaced.

    Args:
        training: what to train.
        report: gets (step, mean loss) every 100 steps.

    Raises:
        JobError: the data cannot be used, or another training is unfinished in the directory.
    """
    data = collections(training.data)
    if training.kind == "order" and data.rule != "strict":
        raise JobError(
            f"{training.data[0]} holds trajectories of decode.rule {data.rule}, and an order is "
            "learned from single commits: train --kind sets on them"
        )
    part, held_out = data.split()
    checkpoints = Checkpoints(
        training.out / UNFINISHED, identity=_identity(training, part), every=training.save_every
    )
    model = _fit(training, part, checkpoints=checkpoints, report=report)
    save_drafter(model, _config(training, data), training.out)
    evaluation = evaluate_model(model, held_out)
    write_json(training.out / REPORT, _report(training, data, evaluation))
    checkpoints.remove()
    return evaluation


def _identity(training: Training, trajectories: Trajectories) -> Row:
    """What an unfinished training must agree with to be resumed."""
    when = trajectories.when.tobytes() + trajectories.step.tobytes()
    return {
        "kind": training.kind,
        "shape": training.shape.model_dump(),
        "settings": asdict(training.settings),
        "trajectories_sha256": sha256_hex(when),
    }


def _fit(
    training: Training,
    trajectories: Trajectories,
    *,
    checkpoints: Checkpoints,
    report: Callable[[int, float], None],
) -> nn.Module:
    if training.force and not checkpoints.usable():
        checkpoints.remove()
    fit: Callable[..., nn.Module]
    fit = train_order_model if training.kind == "order" else train_set_model
    try:
        return fit(
            trajectories,
            shape=training.shape,
            settings=training.settings,
            report=report,
            checkpoints=checkpoints,
        )
    except CheckpointError as error:
        raise JobError(f"{error}; --force does that") from error


def _config(training: Training, data: Collection) -> DrafterConfig:
    return DrafterConfig(
        kind=training.kind,
        shape=training.shape,
        block_length=data.block_length,
        target=data.target,
        data=data.data,
    )


def _report(training: Training, data: Collection, evaluation: Evaluation) -> Row:
    return {
        "kind": training.kind,
        "target": data.target,
        "data": data.data,
        "states": len(data.trajectories.step),
        "settings": asdict(training.settings),
        "held_out": evaluation.rows,
        "calibration": evaluation.reliability.rows(),
        "calibration_error": evaluation.reliability.error(),
    }


def evaluate_drafter(
    data: Sequence[Path], drafter: Path, *, all_samples: bool = False
) -> Evaluation:
    """Measure a drafter directory on held-out trajectories, or on all; of any target.

    Raises:
        JobError: data or drafter cannot be used.
    """
    found = collections(data)
    trajectories = found.trajectories if all_samples else found.split()[1]
    try:
        config = read_config(drafter)
        if config.kind == "order":
            return evaluate_model(load_order_model(drafter)[0], trajectories)
        calibration = SetCalibration(temperature=config.temperature, bias=config.bias)
        return evaluate_model(load_set_model(drafter)[0], trajectories, calibration=calibration)
    except DrafterError as error:
        raise JobError(str(error)) from error


def evaluate_model(
    model: nn.Module, trajectories: Trajectories, *, calibration: SetCalibration | None = None
) -> Evaluation:
    """Accuracy by depth of either kind of model."""
    reliability = Reliability()
    if isinstance(model, OrderModel):
        orders = accuracy_by_depth(model, trajectories, reliability=reliability)
        first, second = mean_accuracy(orders)
        rows = [row._asdict() for row in orders]
        mean = {"depth": "all", "order_model": first, "stale_confidence": second}
    else:
        assert isinstance(model, SetModel), "there are two kinds of drafters"
        sets = set_accuracy_by_depth(
            model, trajectories, calibration=calibration, reliability=reliability
        )
        first, second = mean_set_accuracy(sets)
        rows = [row._asdict() for row in sets]
        mean = {"tau": "all", "depth": "all", "set_model": first, "sets_stale": second}
    mean["examples"] = sum(row["examples"] for row in rows)
    return Evaluation(rows=rows, mean=mean, reliability=reliability)


class Progress:
    """Lines about a running training: step, loss, seconds left."""

    def __init__(self, steps: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._steps, self._clock = steps, clock
        self._first: tuple[int, float] | None = None

    def line(self, step: int, loss: float) -> str:
        """What to say; the time left is known from the second line on."""
        now = self._clock()
        line = f"step {step} of {self._steps}: loss {loss:.4f}"
        if self._first is None:
            self._first = step, now
            return line
        step_s = (now - self._first[1]) / (step - self._first[0])
        return f"{line}, {step_s * (self._steps - step):.0f} s left"
