"""What the order model sees of a position: stale probabilities, statistics, and the path so far.

The paper names the inputs (top-32 stale probabilities raw and log, eight statistics, two path
features) without listing the statistics; ours are below.

Legend: B sequences, N nodes, L block length, K stale candidates, F features.
"""

import torch
from torch import Tensor
from torch.nn import functional

from spot.drafters.base import STALE_TOP

NUM_STATISTICS = 8
NUM_PATH = 2
NUM_FEATURES = 2 * STALE_TOP + NUM_STATISTICS + NUM_PATH
LOG_SCALE = 10.0
DOUBT_SCALE = 4.0
DEPTH_SCALE = 8.0


def stale_features(log_probs: Tensor, doubts: Tensor, masked: Tensor) -> Tensor:
    """Features that all nodes of a round share.

    Args:
        log_probs: fp32 [B, L, K], descending; rows outside ``masked`` are ignored.
        doubts: fp32 [B, L], log of minus the best log-probability.
        masked: bool [B, L], masked at the root.

    Returns:
        fp32 [B, L, F - 3], zero outside ``masked``.
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
    features = torch.cat([probs, log_probs / LOG_SCALE, statistics], dim=-1)
    return features * masked[..., None]


def with_path(shared: Tensor, *, masked: Tensor, taken: Tensor, depth: Tensor) -> Tensor:
    """Append what depends on the path: filled neighbours, and the two path features.

    Args:
        shared: [N, L, F - 3].
        masked: bool [N, L], masked at the root.
        taken: bool [N, L], committed by the hypothetical prefix.
        depth: int64 [N], its length.

    Returns:
        fp32 [N, L, F].
    """
    filled = functional.pad((~masked | taken).float(), (1, 1))
    neighbours = (filled[:, :-2] + filled[:, 2:]) / 2
    depths = (depth.float() / DEPTH_SCALE)[:, None].expand(taken.shape)
    path = torch.stack([neighbours, taken.float(), depths], dim=-1)
    return torch.cat([shared, path], dim=-1)
