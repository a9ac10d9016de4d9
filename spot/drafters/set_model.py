"""The set model: which masked positions commit together under the threshold rule.

The rule commits an upper level set of the fresh confidences. So per position the model predicts
where the fresh doubt will lie: a logistic law with a location and a slope, conditioned on the path.
The membership logit is then ``slope * (doubt of tau - location)``: tau is an input, and one model
serves them all. A third output per position is the order for the fallback, where nothing passes.

Legend: N nodes, L block length, F features.
"""

import math
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from spot.drafters.checkpoint import DrafterConfig, OrderModelShape, load_weights, read_config
from spot.drafters.encoder import Encoder


class SetLaw(NamedTuple):
    """What the model says about the next transition of each node."""

    membership: Tensor  # fp32 [N, L], logits; -inf where nothing can commit
    order: Tensor  # fp32 [N, L], log-probabilities of the fallback's position


def doubt_of(tau: float) -> float:
    """The doubt (log of minus the log-probability) at which the threshold lies."""
    return math.log(-math.log(tau))


class SetModel(nn.Module):
    """Locates fresh doubts."""

    def __init__(self, shape: OrderModelShape) -> None:
        super().__init__()
        self.encoder = Encoder(shape)
        self.head = nn.Linear(shape.width, 3)

    def forward(
        self, features: Tensor, *, doubts: Tensor, masked: Tensor, taken: Tensor, threshold: Tensor
    ) -> SetLaw:
        """The law of the next set.

        Args:
            features: fp32 [N, L, F].
            doubts: stale ones, fp32 [N, L]; the location is predicted relative to them.
            masked: bool [N, L], masked at the root; others are not seen.
            taken: bool [N, L], committed by the hypothetical prefix.
            threshold: doubt of tau, fp32 [N, 1].
        """
        out: Tensor = self.head(self.encoder(features, masked=masked))
        location = doubts.masked_fill(~masked, 0.0) + out[..., 0]
        slope = functional.softplus(out[..., 1] + 1.0)
        closed = ~masked | taken
        membership = (slope * (threshold - location)).masked_fill(closed, -torch.inf)
        return SetLaw(membership, out[..., 2].masked_fill(closed, -torch.inf).log_softmax(-1))


def load_set_model(path: str | Path) -> tuple[SetModel, DrafterConfig]:
    """Read a drafter directory of kind ``sets``."""
    config = read_config(path, kind="sets")
    model = SetModel(config.shape)
    load_weights(model, path)
    return model, config
