"""The order model: which masked position commits next, given stale conditionals and a path.

One score per position (reference `algorithms.md`, 1.6); taken positions cannot be chosen.

Legend: N nodes, L block length, F features.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

from spot.drafters.checkpoint import DrafterConfig, OrderModelShape, load_weights, read_config
from spot.drafters.encoder import Encoder


class OrderModel(nn.Module):
    """Scores positions for the next commit."""

    def __init__(self, shape: OrderModelShape) -> None:
        super().__init__()
        self.encoder = Encoder(shape)
        self.score = nn.Linear(shape.width, 1)

    def forward(self, features: Tensor, *, masked: Tensor, taken: Tensor) -> Tensor:
        """Log-probabilities of the next position.

        Args:
            features: fp32 [N, L, F].
            masked: bool [N, L], masked at the root; others are not seen.
            taken: bool [N, L], committed by the hypothetical prefix.

        Returns:
            fp32 [N, L], -inf where nothing can commit.
        """
        scores: Tensor = self.score(self.encoder(features, masked=masked))[..., 0]
        return scores.masked_fill(~masked | taken, -torch.inf).log_softmax(-1)


def load_order_model(path: str | Path) -> tuple[OrderModel, DrafterConfig]:
    """Read a drafter directory of kind ``order``."""
    config = read_config(path, kind="order")
    model = OrderModel(config.shape)
    load_weights(model, path)
    return model, config
