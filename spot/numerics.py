"""Linear layers whose rows do not depend on how many rows there are.

On CPU in fp32 a product is bit-equal for any number of rows when there are at least 16 of them and
the inner dimension is summed in fixed chunks of at most 512 (larger inner dimensions are blocked
differently for small products and between thread counts). See design "Numerics".
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

CHUNK = 512
ROW_TILE = 32


class ChunkedLinear(nn.Module):
    """A linear layer that sums its inner dimension in fixed chunks, in order."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weights = nn.ParameterList(
            [nn.Parameter(w.contiguous(), False) for w in linear.weight.split(CHUNK, dim=1)]
        )
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        out = _in_order(x, list(self.weights))
        return out if self.bias is None else out + self.bias


def linear_in_chunks(x: Tensor, weight: Tensor) -> Tensor:
    """[.., in] times [out, in], summed like a ``ChunkedLinear``, without a copy of the weight."""
    return _in_order(x, weight.split(CHUNK, dim=1))


def _in_order(x: Tensor, weights: Sequence[Tensor]) -> Tensor:
    parts = x.split(CHUNK, dim=-1)
    out = functional.linear(parts[0], weights[0])
    for part, weight in zip(parts[1:], weights[1:], strict=True):
        out = out + functional.linear(part, weight)
    return out


def make_invariant(module: nn.Module) -> None:
    """Replace, in place, every linear layer with an inner dimension above the chunk size."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear) and child.in_features > CHUNK:
            setattr(module, name, ChunkedLinear(child))
        else:
            make_invariant(child)


def pad_rows(x: Tensor) -> Tensor:
    """Pad [R, K] with zero rows to whole tiles, at least one."""
    missing = -x.shape[0] % ROW_TILE if x.shape[0] else ROW_TILE
    return functional.pad(x, (0, 0, 0, missing)) if missing else x


def set_threads(num_threads: int) -> None:
    """Set the CPU threads of this process; never inherited from the environment."""
    torch.set_num_threads(num_threads)
