"""What the order model sees of a position: stale probabilities, statistics, and the path so far.

The paper names the inputs (top-32 stale probabilities raw and log, eight statistics, two path
features) without listing the statistics; ours are below.

Legend: B sequences, N nodes, L block length, K stale candidates, F features.
"""

import torch
from torch import Tensor

from spot.drafters.base import STALE_TOP

NUM_STATISTICS = 8
NUM_PATH = 2
NUM_FEATURES = 2 * STALE_TOP + NUM_STATISTICS + NUM_PATH
LOG_SCALE = 10.0
DEPTH_SCALE = 8.0


def stale_features(log_probs: Tensor, masked: Tensor) -> Tensor:
    """Features that all nodes of a round share.

    Args:
        log_probs: fp32 [B, L, K], descending; rows outside ``masked`` are ignored.
        masked: bool [B, L], masked at the root.

    Returns:
        fp32 [B, L, F - 2], zero outside ``masked``.
    """
    log_probs = log_probs.masked_fill(~masked[..., None], 0.0)
    probs = log_probs.exp()
    top = log_probs[..., 0]
    length = masked.shape[1]
    order = top.masked_fill(~masked, -torch.inf)
    rank = (order[:, None, :] > order[:, :, None]).sum(-1) / length
    place = (torch.arange(length, device=masked.device) / length).expand_as(top)
    share = masked.float().mean(-1, keepdim=True).expand_as(top)
    committed = torch.nn.functional.pad((~masked).float(), (1, 1))
    neighbours = (committed[:, :-2] + committed[:, 2:]) / 2
    # log of 1 - p keeps apart the confidences that all round to p = 1
    doubt = torch.log(-torch.expm1(top.clamp(max=-1e-9))) / LOG_SCALE
    entropy = -(probs * log_probs).sum(-1)
    tail = 1.0 - probs.sum(-1)
    gap = (log_probs[..., 0] - log_probs[..., 1]) / LOG_SCALE
    statistics = torch.stack([doubt, gap, entropy, tail, rank, place, share, neighbours], dim=-1)
    features = torch.cat([probs, log_probs / LOG_SCALE, statistics], dim=-1)
    return features * masked[..., None]


def with_path(shared: Tensor, *, taken: Tensor, depth: Tensor) -> Tensor:
    """Append the path features.

    Args:
        shared: [N, L, F - 2].
        taken: bool [N, L], committed by the hypothetical prefix.
        depth: int64 [N], its length.
    """
    depths = (depth.float() / DEPTH_SCALE)[:, None, None].expand(*taken.shape, 1)
    return torch.cat([shared, taken[..., None].float(), depths], dim=-1)
