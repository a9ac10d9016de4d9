"""Held-out accuracy by depth: of the order model's next position, of the set model's next set.

Each stands beside what stale confidence alone would say.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from spot.drafters.order_model import OrderModel
from spot.drafters.set_model import SetModel
from spot.drafters.sets import SetCalibration
from spot.training.calibrate import Reliability
from spot.training.membership import SetExamples, likeliest, set_examples, set_law, stale_sets
from spot.training.train import SHALLOW, inputs
from spot.training.trajectories import Trajectories, examples_at

BATCH = 512
TAUS = (0.9, 0.95)


class Accuracy(NamedTuple):
    """Shares of examples whose next position is predicted right."""

    depth: int
    examples: int
    order_model: float
    stale_confidence: float


class SetAccuracy(NamedTuple):
    """Shares of examples whose whole next set is predicted right."""

    tau: float
    depth: int
    examples: int
    set_model: float
    sets_stale: float


class Guesses(NamedTuple):
    """How many examples there are, and how many each side gets right."""

    examples: int
    model: int
    stale: int

    def shares(self) -> tuple[int, float, float]:
        """Examples, and the two shares of them."""
        total = max(self.examples, 1)
        return self.examples, self.model / total, self.stale / total


def accuracy_by_depth(
    model: OrderModel, trajectories: Trajectories, *, reliability: Reliability | None = None
) -> list[Accuracy]:
    """Accuracy at each depth over all roots; ``reliability`` gets the guesses' probabilities."""
    found = []
    for depth in range(SHALLOW):
        parts = [
            _guess_positions(model, trajectories, roots, depth, reliability)
            for roots in _batches(trajectories)
        ]
        found.append(Accuracy(depth, *_sum(parts).shares()))
    return found


@torch.inference_mode()
def _guess_positions(
    model: OrderModel,
    trajectories: Trajectories,
    roots: NDArray[np.int64],
    depth: int,
    reliability: Reliability | None,
) -> Guesses:
    examples = examples_at(trajectories, roots, np.full(len(roots), depth))
    if not len(examples.label):
        return Guesses(0, 0, 0)
    given, label = inputs(trajectories, examples), torch.from_numpy(examples.label)
    best = model(given.features, masked=given.masked, taken=given.taken).max(-1)
    right = best.indices == label
    if reliability is not None:
        reliability.add(best.values.exp().numpy(), hits=right.numpy())
    stale = given.doubts.masked_fill(~given.masked | given.taken, torch.inf).argmin(-1)
    return Guesses(len(label), int(right.sum()), int((stale == label).sum()))


def set_accuracy_by_depth(
    model: SetModel,
    trajectories: Trajectories,
    *,
    calibration: SetCalibration | None = None,
    taus: Iterable[float] = TAUS,
    reliability: Reliability | None = None,
) -> list[SetAccuracy]:
    """Exact-set accuracy at each tau and depth; ``reliability`` gets the membership laws."""
    read = calibration or SetCalibration()
    found = []
    for tau in taus:
        for depth in range(SHALLOW):
            parts = [
                _guess_sets(model, set_examples(trajectories, r, depth=depth, tau=tau), tau, read)
                for r in _batches(trajectories)
            ]
            for _, probability, passes in parts:
                if reliability is not None:
                    reliability.add(probability, hits=passes)
            guesses = _sum([part.guesses for part in parts])
            found.append(SetAccuracy(tau, depth, *guesses.shares()))
    return found


class _SetGuesses(NamedTuple):
    guesses: Guesses
    probability: NDArray[np.float64]  # of every open position
    passes: NDArray[np.bool_]


def _guess_sets(
    model: SetModel, examples: SetExamples, tau: float, calibration: SetCalibration
) -> _SetGuesses:
    if not len(examples.open):
        return _SetGuesses(Guesses(0, 0, 0), np.empty(0), np.empty(0, bool))
    law = set_law(model, examples.given, tau=tau)
    stale = stale_sets(examples.given, open_=examples.open, tau=tau)
    right, stale_right = (
        int((guess == examples.commits).all(1).sum())
        for guess in (likeliest(law, calibration), stale)
    )
    logits = law.membership.numpy()[examples.open] / calibration.temperature + calibration.bias
    probability = np.exp(-np.logaddexp(0.0, -logits.astype(np.float64)))
    return _SetGuesses(
        Guesses(len(examples.open), right, stale_right),
        probability,
        examples.passes[examples.open],
    )


def _sum(parts: Sequence[Guesses]) -> Guesses:
    return Guesses(*(sum(column) for column in zip(Guesses(0, 0, 0), *parts, strict=True)))


def _batches(trajectories: Trajectories) -> Iterator[NDArray[np.int64]]:
    roots = trajectories.roots()
    for first in range(0, len(roots), BATCH):
        yield roots[first : first + BATCH]


def mean_accuracy(rows: list[Accuracy]) -> tuple[float, float]:
    """Over all examples of all depths: (order model, stale confidence)."""
    total = max(sum(r.examples for r in rows), 1)
    model = sum(r.examples * r.order_model for r in rows) / total
    return model, sum(r.examples * r.stale_confidence for r in rows) / total


def mean_set_accuracy(rows: list[SetAccuracy]) -> tuple[float, float]:
    """Over all examples of all taus and depths: (set model, stale sets)."""
    total = max(sum(r.examples for r in rows), 1)
    model = sum(r.examples * r.set_model for r in rows) / total
    return model, sum(r.examples * r.sets_stale for r in rows) / total
