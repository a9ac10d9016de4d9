"""Training of the learned drafters on draft-free trajectories (paper, appendix C).

For each root and each depth d the stale conditionals stay fixed while the first d true transitions
are applied. The order model's label is the commit after them (cross entropy). The set model's
labels are which fresh confidences pass a threshold, for thresholds drawn anew at every step, so
that one file of trajectories serves every tau, and which position leads.

Legend: N examples, L block length, F features.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.features import stale_features, with_path
from spot.drafters.order_model import OrderModel
from spot.drafters.set_model import SetModel, doubt_of
from spot.training.checkpointing import Checkpoints, TrainingRun
from spot.training.trajectories import Examples, Trajectories, examples_at, states_at

HELD_OUT_EVERY = 10  # every tenth sample is held out
SHALLOW = 8  # half of the examples are no deeper: that is where most drafts are
TAU_RANGE = (0.8, 0.99)
REPORT_EVERY = 100  # steps

Ints = NDArray[np.int64]
Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """How a model is trained."""

    steps: int = 4000
    batch: int = 256
    learning_rate: float = 1e-3
    max_depth: int = 24  # transitions between root and label
    seed: int = 0


class Inputs(NamedTuple):
    """What a model is given about examples."""

    features: Tensor  # fp32 [N, L, F]
    doubts: Tensor  # fp32 [N, L], stale
    masked: Tensor  # bool [N, L], at the root
    taken: Tensor  # bool [N, L]


def split(trajectories: Trajectories) -> tuple[Trajectories, Trajectories]:
    """Training and held-out states, by sample."""
    held_out = trajectories.sample % HELD_OUT_EVERY == 0
    return trajectories.select(~held_out), trajectories.select(held_out)


def inputs(trajectories: Trajectories, examples: Examples) -> Inputs:
    """Model inputs of examples."""
    stale = examples.root - 1
    seen = torch.from_numpy(trajectories.masked_at(stale, trajectories.step[stale]))
    log_probs = torch.from_numpy(trajectories.log_probs[stale]).float()
    doubts = torch.from_numpy(trajectories.doubts[stale]).float()
    masked = torch.from_numpy(examples.masked)
    taken = torch.from_numpy(examples.taken)
    depth = torch.from_numpy(examples.depth)
    shared = stale_features(log_probs, doubts, masked, seen)
    return Inputs(with_path(shared, masked=masked, taken=taken, depth=depth), doubts, masked, taken)


def train_order_model(
    trajectories: Trajectories,
    *,
    shape: OrderModelShape,
    settings: TrainSettings,
    report: Callable[[int, float], None],
    checkpoints: Checkpoints | None = None,
) -> OrderModel:
    """Train from scratch, or go on from the last checkpoint.

    ``report`` gets (step, mean loss) every 100 steps.
    """

    def loss(model: OrderModel, roots: Ints, depths: Ints, rng: Generator) -> Tensor | None:
        examples = examples_at(trajectories, roots, depths)
        if not len(examples.label):
            return None
        given = inputs(trajectories, examples)
        found = model(given.features, masked=given.masked, taken=given.taken)
        return functional.nll_loss(found, torch.from_numpy(examples.label))

    torch.manual_seed(settings.seed)
    return _train(
        OrderModel(shape),
        loss,
        roots=trajectories.roots(),
        settings=settings,
        report=report,
        checkpoints=checkpoints,
    )


def train_set_model(
    trajectories: Trajectories,
    *,
    shape: OrderModelShape,
    settings: TrainSettings,
    report: Callable[[int, float], None],
    checkpoints: Checkpoints | None = None,
) -> SetModel:
    """Train from scratch, or go on from the last checkpoint.

    ``report`` gets (step, mean loss) every 100 steps.
    """
    low, high = (np.log(tau / (1 - tau)) for tau in TAU_RANGE)

    def loss(model: SetModel, roots: Ints, depths: Ints, rng: Generator) -> Tensor | None:
        examples, rows = states_at(trajectories, roots, depths)
        if not len(rows):
            return None
        given = inputs(trajectories, examples)
        odds = rng.uniform(low, high, len(rows))
        threshold = torch.tensor([[doubt_of(1 / (1 + np.exp(-x)))] for x in odds]).float()
        found = model(
            given.features,
            doubts=given.doubts,
            masked=given.masked,
            taken=given.taken,
            threshold=threshold,
        )
        fresh = torch.from_numpy(trajectories.doubts[rows]).float()
        open_ = given.masked & ~given.taken
        passes = (fresh < threshold)[open_].float()
        membership = functional.binary_cross_entropy_with_logits(
            found.membership[open_], passes, reduction="sum"
        )
        leader = fresh.masked_fill(~open_, torch.inf).argmin(-1)
        return membership / len(rows) + functional.nll_loss(found.order, leader)

    torch.manual_seed(settings.seed)
    return _train(
        SetModel(shape),
        loss,
        roots=trajectories.roots(),
        settings=settings,
        report=report,
        checkpoints=checkpoints,
    )


def _train(
    model: Model,
    loss_of: Callable[[Model, Ints, Ints, Generator], Tensor | None],
    *,
    roots: Ints,
    settings: TrainSettings,
    report: Callable[[int, float], None],
    checkpoints: Checkpoints | None,
) -> Model:
    """AdamW with one cycle of the learning rate."""
    rng, aside = np.random.default_rng(settings.seed), np.random.default_rng(settings.seed + 1)
    model.train()
    run = TrainingRun.start(
        model,
        steps=settings.steps,
        learning_rate=settings.learning_rate,
        generators={"examples": rng, "aside": aside},
    )
    if checkpoints is not None:
        checkpoints.resume(run)
    while run.step < settings.steps:
        depths = rng.integers(0, settings.max_depth, settings.batch)
        depths[::2] %= SHALLOW
        loss = loss_of(model, rng.choice(roots, settings.batch), depths, aside)
        if loss is None:  # every label lies past the end of its block: draw again
            continue
        run.descend(loss)
        if run.step % REPORT_EVERY == 0:
            report(run.step, float(np.mean(run.losses)))
            run.losses.clear()
        if checkpoints is not None:
            checkpoints.after_step(run)
    return model.eval().requires_grad_(False)
