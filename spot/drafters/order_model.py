"""The order model: which masked position commits next, given stale conditionals and a path.

An encoder over the positions masked at the root; taken positions stay in, flagged, and cannot be
chosen. Pre-LN layers, a two-layer input, one score per position (reference `algorithms.md`, 1.6).

Legend: N nodes, L block length, F features, W width.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from spot.drafters.checkpoint import CONFIG, WEIGHTS, DrafterConfig, OrderModelShape, read_config
from spot.drafters.features import NUM_FEATURES


class EncoderLayer(nn.Module):
    """A pre-LN transformer layer."""

    def __init__(self, shape: OrderModelShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.norm_in = nn.LayerNorm(shape.width)
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.norm_mid = nn.LayerNorm(shape.width)
        self.up = nn.Linear(shape.width, shape.feedforward)
        self.down = nn.Linear(shape.feedforward, shape.width)

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        """[N, L, W] with bool visible [N, 1, 1, L] to [N, L, W]."""
        q, k, v = self.qkv(self.norm_in(x)).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        mixed = functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=visible
        )
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm_mid(x))))  # type: ignore[no-any-return]


class OrderModel(nn.Module):
    """Scores positions for the next commit."""

    def __init__(self, shape: OrderModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Linear(NUM_FEATURES, shape.width)
        self.lift = nn.Linear(shape.width, shape.width)
        self.layers = nn.ModuleList(EncoderLayer(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
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
        x = self.lift(functional.gelu(self.embed(features)))
        visible = masked[:, None, None, :]
        for layer in self.layers:
            x = layer(x, visible)
        scores: Tensor = self.score(self.norm(x))[..., 0]
        return scores.masked_fill(~masked | taken, -torch.inf).log_softmax(-1)


def save_order_model(model: OrderModel, config: DrafterConfig, directory: Path) -> None:
    """Write weights and description."""
    directory.mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, directory / WEIGHTS)
    text = json.dumps(config.model_dump(), indent=2, sort_keys=True)
    (directory / CONFIG).write_text(text + "\n", encoding="utf-8")


def load_order_model(path: str | Path) -> tuple[OrderModel, DrafterConfig]:
    """Read a drafter directory."""
    config = read_config(path)
    model = OrderModel(config.shape)
    model.load_state_dict(load_file(Path(path) / WEIGHTS))
    return model.eval().requires_grad_(False), config
