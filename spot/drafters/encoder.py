"""The encoder that the learned drafters share: pre-LN layers over the positions masked at the root.

Taken positions stay in, flagged: that is what makes its output depend on the hypothetical path.

Legend: N nodes, L block length, F features, W width.
"""

from torch import Tensor, nn
from torch.nn import functional

from spot.drafters.checkpoint import OrderModelShape
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


class Encoder(nn.Module):
    """A two-layer input, transformer layers, a final norm."""

    def __init__(self, shape: OrderModelShape) -> None:
        super().__init__()
        self.embed = nn.Linear(NUM_FEATURES, shape.width)
        self.lift = nn.Linear(shape.width, shape.width)
        self.layers = nn.ModuleList(EncoderLayer(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)

    def forward(self, features: Tensor, *, masked: Tensor) -> Tensor:
        """Features fp32 [N, L, F] and bool masked [N, L] (others are not seen) to [N, L, W]."""
        x = self.lift(functional.gelu(self.embed(features)))
        visible = masked[:, None, None, :]
        for layer in self.layers:
            x = layer(x, visible)
        return self.norm(x)  # type: ignore[no-any-return]
