"""Training of the order model: cross entropy of the next commit, at every depth of the path.

For each root of a draft-free trajectory and each depth d = 0..7, the stale conditionals stay fixed
while the first d true commits are applied; the label is the commit after them (paper, appendix C).

Legend: N examples, L block length.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.features import stale_features, with_path
from spot.drafters.order_model import OrderModel
from spot.training.trajectories import Examples, Trajectories, examples_at

MAX_DEPTH = 8
HELD_OUT_EVERY = 10  # every tenth sample is held out


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """How the order model is trained."""

    steps: int = 4000
    batch: int = 256
    learning_rate: float = 1e-3
    seed: int = 0


def split(trajectories: Trajectories) -> tuple[Trajectories, Trajectories]:
    """Training and held-out roots, by sample."""
    held_out = trajectories.sample % HELD_OUT_EVERY == 0
    return trajectories.select(~held_out), trajectories.select(held_out)


def inputs(trajectories: Trajectories, examples: Examples) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features [N, L, F], masked [N, L], taken [N, L] and labels [N]."""
    log_probs = torch.from_numpy(trajectories.log_probs[examples.root]).float()
    masked = torch.from_numpy(trajectories.masked[examples.root])
    taken = torch.from_numpy(examples.taken)
    depth = torch.from_numpy(examples.depth)
    doubts = torch.from_numpy(trajectories.doubts[examples.root]).float()
    shared = stale_features(log_probs, doubts, masked)
    features = with_path(shared, masked=masked, taken=taken, depth=depth)
    return features, masked, taken, torch.from_numpy(examples.label)


def train_order_model(
    trajectories: Trajectories,
    *,
    shape: OrderModelShape,
    settings: TrainSettings,
    report: Callable[[int, float], None],
) -> OrderModel:
    """Train from scratch; ``report`` gets (step, mean loss) every 100 steps."""
    torch.manual_seed(settings.seed)
    rng = np.random.default_rng(settings.seed)
    model = OrderModel(shape).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=settings.learning_rate, total_steps=settings.steps, pct_start=0.05
    )
    losses: list[float] = []
    for step in range(1, settings.steps + 1):
        roots = rng.integers(0, len(trajectories.step), settings.batch)
        depths = rng.integers(0, MAX_DEPTH, settings.batch)
        features, masked, taken, label = inputs(
            trajectories, examples_at(trajectories, roots, depths)
        )
        loss = functional.nll_loss(model(features, masked=masked, taken=taken), label)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 100 == 0:
            report(step, float(np.mean(losses[-100:])))
    return model.eval().requires_grad_(False)
