"""Held-out next-commit accuracy by depth, beside the order of stale confidence."""

from typing import NamedTuple

import numpy as np
import torch

from spot.drafters.order_model import OrderModel
from spot.training.train import MAX_DEPTH, inputs
from spot.training.trajectories import Trajectories, examples_at

BATCH = 512


class Accuracy(NamedTuple):
    """Shares of examples whose next position is predicted right."""

    depth: int
    examples: int
    order_model: float
    stale_confidence: float


@torch.inference_mode()
def accuracy_by_depth(model: OrderModel, trajectories: Trajectories) -> list[Accuracy]:
    """Accuracy at each depth over all roots."""
    found = []
    for depth in range(MAX_DEPTH):
        hits = np.zeros(2)
        total = 0
        for first in range(0, len(trajectories.step), BATCH):
            roots = np.arange(first, min(first + BATCH, len(trajectories.step)))
            examples = examples_at(trajectories, roots, np.full(len(roots), depth))
            if not len(examples.label):
                continue
            features, masked, taken, label = inputs(trajectories, examples)
            guess = model(features, masked=masked, taken=taken).argmax(-1)
            doubts = torch.from_numpy(trajectories.doubts[examples.root]).float()
            stale = doubts.masked_fill(~masked | taken, torch.inf).argmin(-1)
            hits += [int((guess == label).sum()), int((stale == label).sum())]
            total += len(label)
        share = hits / max(total, 1)
        found.append(Accuracy(depth, total, float(share[0]), float(share[1])))
    return found


def mean_accuracy(rows: list[Accuracy]) -> tuple[float, float]:
    """Over all examples of all depths: (order model, stale confidence)."""
    total = max(sum(r.examples for r in rows), 1)
    model = sum(r.examples * r.order_model for r in rows) / total
    return model, sum(r.examples * r.stale_confidence for r in rows) / total
