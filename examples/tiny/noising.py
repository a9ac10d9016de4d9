"""Which answer positions of each block are masked in a training step.

Legend: B sequences, N noised positions, L block length.
"""

import torch
from torch import Tensor


def mask_blocks(
    answer: Tensor, *, block_length: int, rank: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Mask k of the m answer positions of each block, k uniform on 1..m, highest ``rank`` first.

    Args:
        answer: bool [B, N], positions that may be masked.
        block_length: L; N is a multiple of it.
        rank: float [B, N]; random ranks give the usual uniform masks, negative confidences give
            the states that most-confident-first decoding visits.
        generator: source of k.

    Returns:
        Masked positions, bool [B, N], and loss weights m / k, float [B, N], which make every block
        count as in the any-order likelihood.
    """
    rows, width = answer.shape
    shape = (rows, width // block_length, block_length)
    answer, rank = answer.view(shape), rank.view(shape)
    m = answer.sum(-1, keepdim=True)
    k = (torch.rand(m.shape, generator=generator) * m).floor().long() + 1
    order = rank.masked_fill(~answer, -torch.inf).argsort(-1, descending=True)
    place = torch.empty_like(order).scatter_(-1, order, torch.arange(block_length).expand(shape))
    masked = (place < k) & answer
    weights = (m / k).expand(shape)
    return masked.reshape(rows, width), weights.reshape(rows, width)
