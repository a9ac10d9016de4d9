"""What the models see: distances to what is filled, at the stale state and along the path."""

import pytest
import torch

from spot.drafters.base import STALE_TOP
from spot.drafters.features import distances, stale_features


def test_distances_count_steps_to_what_is_filled_on_either_side() -> None:
    filled = torch.tensor([[False, False, True, False]])
    found = distances(filled)[0]
    steps = torch.exp2(6.0 * found[:, :2]) - 1.0
    assert steps[:, 0].tolist() == pytest.approx([1, 2, 0, 1])  # the block before counts
    assert steps[:, 1].tolist() == pytest.approx([2, 1, 0, 5])  # behind the block nothing is
    assert (8 * found[:, 2]).tolist() == [1, 1, 0, 1]


def test_stale_features_tell_what_was_masked_when_the_conditionals_were_computed() -> None:
    log_probs = torch.full((1, 4, STALE_TOP), -3.0)
    doubts, masked = torch.zeros(1, 4), torch.tensor([[True, True, False, True]])
    then = torch.ones(1, 4, dtype=torch.bool)
    assert not torch.equal(
        stale_features(log_probs, doubts, masked, masked),
        stale_features(log_probs, doubts, masked, then),
    )
