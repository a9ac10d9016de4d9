"""The requests of one drafting call as stacked arrays.

Legend: B sequences, L block length, K stale candidates.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from spot.drafters.base import DraftRequest
from spot.drafters.tree import Bounds, Flags, Floats, Ints
from spot.verification import signed


class RequestBatch(NamedTuple):
    """Stacked requests."""

    roots: Ints  # [B, L]
    masked: Tensor  # bool [B, L], at the root
    seen: Tensor  # bool [B, L], masked at the state that the stale conditionals are of
    log_probs: Tensor  # fp32 [B, L, K]
    doubts: Tensor  # fp32 [B, L], log of minus the best log-probability
    tokens: Tensor  # int64 [B, L, K]
    keys: Tensor  # int64 [B]
    starts: Tensor  # int64 [B]
    budgets: Ints  # [B]
    full_states: Flags  # [B]
    depths: Ints  # [B]
    floors: Floats  # [B]
    deeper: Floats  # [B]

    def bounds(self, *, gamma: float = 0.0, merged: bool = True) -> Bounds:
        """Limits of the trees."""
        return Bounds(
            budgets=self.budgets,
            full_states=self.full_states,
            depths=self.depths,
            floors=np.maximum(self.floors, np.float32(gamma)),
            deeper=self.deeper,
            merged=merged,
        )


def stack(requests: list[DraftRequest], *, mask_id: int) -> RequestBatch:
    """Stack what the requests carry."""
    roots = np.stack([r.root for r in requests])
    return RequestBatch(
        roots=roots,
        masked=torch.from_numpy(roots == mask_id),
        seen=torch.from_numpy(np.stack([r.stale.masked for r in requests])),
        log_probs=torch.from_numpy(np.stack([r.stale.log_probs for r in requests])).float(),
        doubts=torch.from_numpy(np.stack([r.stale.doubts for r in requests])).float(),
        tokens=torch.from_numpy(np.stack([r.stale.tokens for r in requests])),
        keys=torch.tensor([signed(r.key) for r in requests]),
        starts=torch.tensor([r.start for r in requests]),
        budgets=np.array([r.budget for r in requests]),
        full_states=np.array([r.full_states for r in requests]),
        depths=np.array([r.depth for r in requests]),
        floors=np.array([r.floor for r in requests], np.float32),
        deeper=np.array([r.deeper for r in requests], np.float32),
    )
