"""Trajectories whose rule is known, while stale confidence says nothing about it."""

import numpy as np

from spot.drafters.base import STALE_TOP
from spot.drafters.checkpoint import OrderModelShape
from spot.training.trajectories import Trajectories

L, NUM_SAMPLES = 6, 60
SHAPE = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)


def right_to_left() -> Trajectories:
    """Blocks that commit one position at a time, from right to left."""
    rng = np.random.default_rng(0)
    logs = -np.sort(rng.uniform(0.1, 9.0, (NUM_SAMPLES * L, L, STALE_TOP)))
    return Trajectories(
        log_probs=logs.astype(np.float16),
        doubts=np.log(-logs[..., 0]).astype(np.float16),
        block=np.repeat(np.arange(NUM_SAMPLES), L),
        step=np.tile(np.arange(L), NUM_SAMPLES),
        when=np.tile(np.arange(L, dtype=np.int16)[::-1], (NUM_SAMPLES, 1)),
        sample=np.arange(NUM_SAMPLES),
    )


def pairs_right_to_left() -> Trajectories:
    """Blocks that commit two positions at a time, from right to left.

    Of a state, the two that commit are sure (0.9975) and the others are not.
    """
    rng = np.random.default_rng(0)
    states = L // 2
    when = np.tile(np.arange(L, dtype=np.int16)[::-1] // 2, (NUM_SAMPLES, 1))
    step = np.tile(np.arange(states), NUM_SAMPLES)
    block = np.repeat(np.arange(NUM_SAMPLES), states)
    unsure = rng.uniform(0.0, 2.0, (len(step), L))
    logs = -np.sort(rng.uniform(0.1, 9.0, (len(step), L, STALE_TOP)))
    return Trajectories(
        log_probs=logs.astype(np.float16),
        doubts=np.where(when[block] == step[:, None], -6.0, unsure).astype(np.float16),
        block=block,
        step=step,
        when=when,
        sample=np.arange(NUM_SAMPLES),
    )
