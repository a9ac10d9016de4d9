"""What the models see of a position: stale probabilities, statistics, and the path so far.

The paper names the inputs (top-32 stale probabilities raw and log, eight statistics, two path
features) without listing the statistics; ours are below, with distances to what is filled beside
them. Everything is read off the target's output distributions and off which positions are filled.

Legend: B sequences, N nodes, L block length, K stale candidates, F features.
"""

import torch
from torch import Tensor

from spot.drafters.base import STALE_TOP

NUM_STATISTICS = 10
NUM_PATH = 5
NUM_FEATURES = 2 * STALE_TOP + NUM_STATISTICS + NUM_PATH
LOG_SCALE = 10.0
DOUBT_SCALE = 4.0
DEPTH_SCALE = 8.0
STEP_SCALE = 8.0


def distances(filled: Tensor) -> Tensor:
    """Steps to the nearest filled position on either side, as log2(1 + steps) / 6, and the lesser.

    The block before counts as filled; behind the block nothing is. The steps to the nearer one are
    given as they are, over 8: log doubts grow with them about linearly.

    Args:
        filled: bool [N, L].

    Returns:
        fp32 [N, L, 3]: left, right, nearer.
    """
    length = filled.shape[1]
    places = torch.arange(length, device=filled.device).expand(filled.shape)
    left = places.masked_fill(~filled, -1).cummax(-1).values
    right = places.masked_fill(~filled, 2 * length).flip(-1).cummin(-1).values.flip(-1)
    steps = torch.stack([places - left, right - places], dim=-1)
    nearer = steps.amin(-1, keepdim=True) / STEP_SCALE
    return torch.cat([torch.log2(1.0 + steps) / 6.0, nearer], dim=-1)


def stale_features(log_probs: Tensor, doubts: Tensor, masked: Tensor, seen: Tensor) -> Tensor:
    """Features that all nodes of a round share.

    Args:
        log_probs: fp32 [B, L, K], descending; rows outside ``masked`` are ignored.
        doubts: fp32 [B, L], log of minus the best log-probability.
        masked: bool [B, L], masked at the root.
        seen: bool [B, L], masked at the state that the stale conditionals are of.

    Returns:
        fp32 [B, L, F - NUM_PATH], zero outside ``masked``.
    """
    log_probs = log_probs.masked_fill(~masked[..., None], 0.0)
    probs = log_probs.exp()
    length = masked.shape[1]
    order = doubts.masked_fill(~masked, torch.inf)
    rank = (order[:, None, :] < order[:, :, None]).sum(-1) / length
    place = (torch.arange(length, device=masked.device) / length).expand_as(rank)
    share = masked.float().mean(-1, keepdim=True).expand_as(rank)
    entropy = -(probs * log_probs).sum(-1)
    tail = 1.0 - probs.sum(-1)
    gap = (log_probs[..., 0] - log_probs[..., 1]) / LOG_SCALE
    statistics = torch.stack([doubts / DOUBT_SCALE, gap, entropy, tail, rank, place, share], dim=-1)
    parts = [probs, log_probs / LOG_SCALE, statistics, distances(~seen)]
    return torch.cat(parts, dim=-1) * masked[..., None]


def with_path(shared: Tensor, *, masked: Tensor, taken: Tensor, depth: Tensor) -> Tensor:
    """Append what depends on the path: whether taken, its length, distances to what it fills.

    Args:
        shared: [N, L, F - NUM_PATH].
        masked: bool [N, L], masked at the root.
        taken: bool [N, L], committed by the hypothetical prefix.
        depth: int64 [N], its length (transitions).

    Returns:
        fp32 [N, L, F].
    """
    depths = (depth.float() / DEPTH_SCALE)[:, None].expand(taken.shape)
    path = torch.stack([taken.float(), depths], dim=-1)
    return torch.cat([shared, path, distances(~masked | taken)], dim=-1)
