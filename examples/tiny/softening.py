"""Soft labels that make the target less sure the farther it looks.

The tasks are templates: trained on hard labels, a small model ends up sure of nearly a whole block
at once. Then threshold decoding fills a block in one forward, and the order of strict decoding is
decided by differences of 1e-7, which is nothing like a model of natural text. The last training
stage therefore softens the labels: a masked position with its nearest known token d steps away
keeps its token with probability 1 - eps and spreads eps evenly over the vocabulary, where eps grows
with d and with how rare the token is. The most probable token stays the right one.

Cross entropy hardly sees whether a small eps is right within a factor, yet such factors decide the
order of strict decoding. Squared errors of the doubts, log(-log p), therefore stand beside it, and
a cross entropy over the positions of a block: the surest one is to be the one that the labels name.
Distances count a known token on the right half a step farther, and every place behind the block's
first masked one half a step more: models of natural text write mostly from left to right, and few
positions are equally sure by construction.

Legend: B sequences, N noised positions, L block length, R masked positions, V vocabulary.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional

BASE, GROWTH, CEILING = 0.003, 2.2, 0.7
RIGHT_STEP, TILT = 0.5, 0.5  # steps that a known token on the right, and each place, add
DOUBT_WEIGHT, ORDER_WEIGHT = 0.3, 1.0
ORDER_SCALE = 0.2  # doubts that differ by this much count as different
MEDIAN_BITS, BITS_PER_DOUBLING = 7.0, 2.0


def distance(masked: Tensor, *, block_length: int) -> Tensor:
    """Steps to the nearest known position of the block, or to the block before it, and the tilt.

    The tilt counts from the first masked position of the block, so the next place is always near.

    Args:
        masked: bool [B, N], N a multiple of L.
        block_length: L.

    Returns:
        fp32 [B, N], at least 1 where masked.
    """
    known = ~masked.unflatten(1, (-1, block_length))
    places = torch.arange(block_length).expand(known.shape)
    before = places.masked_fill(~known, -1).cummax(-1).values
    after = places.masked_fill(~known, 2 * block_length).flip(-1).cummin(-1).values.flip(-1)
    nearest = torch.minimum(places - before, after - places + RIGHT_STEP)
    first = places.masked_fill(known, block_length).amin(-1, keepdim=True)
    return (nearest + TILT * (places - first)).flatten(1)


def rarity(sequences: Iterable[list[int]], *, vocab_size: int) -> Tensor:
    """A factor per token, fp32 [V]: 1 at 7 bits of surprise, doubling every 2 bits."""
    counts = torch.ones(vocab_size)
    for ids in sequences:
        counts += torch.bincount(torch.tensor(ids), minlength=vocab_size)
    bits = -(counts / counts.sum()).log2()
    return torch.exp2((bits - MEDIAN_BITS) / BITS_PER_DOUBLING)


def noise_mass(distances: Tensor, rarities: Tensor) -> Tensor:
    """eps of each masked position, fp32 [R]; grows without ever reaching the ceiling."""
    x = BASE * torch.pow(GROWTH, distances - 1.0) * rarities
    return CEILING * x / (CEILING + x)


def soft_loss(logits: Tensor, labels: Tensor, eps: Tensor) -> Tensor:
    """Cross entropy against the softened labels, and the squared error of the doubts, fp32 [R].

    Args:
        logits: fp32 [R, V].
        labels: int64 [R].
        eps: fp32 [R], probability that is spread evenly; 0 leaves plain cross entropy.
    """
    log_probs = functional.log_softmax(logits, dim=-1)
    hard = -log_probs.gather(1, labels[:, None])[:, 0]
    soft = (1.0 - eps) * hard - eps * log_probs.mean(-1)
    return soft + DOUBT_WEIGHT * (eps > 0.0) * doubt_error(hard, eps, vocab_size=logits.shape[1])


def doubt_error(hard: Tensor, eps: Tensor, *, vocab_size: int) -> Tensor:
    """How far log(-log p) of the label is from where eps puts it; Huber's, fp32 [R].

    Args:
        hard: fp32 [R], -log p of the label.
        eps: fp32 [R].
        vocab_size: V; one share of eps falls on the label itself.
    """
    wanted = -torch.log1p(-eps * (1.0 - 1.0 / vocab_size))
    error = hard.clamp(min=1e-7).log() - wanted.clamp(min=1e-7).log()
    return functional.smooth_l1_loss(error, torch.zeros_like(error), reduction="none")


def order_loss(logits: Tensor, labels: Tensor, eps: Tensor, masked: Tensor) -> Tensor:
    """Cross entropy of the surest position of each block against the one that the labels name.

    Args:
        logits: fp32 [R, V].
        labels: int64 [R].
        eps: fp32 [R], positive.
        masked: bool [B, L], R of them; a row is one block.

    Returns:
        fp32 [], the mean over blocks with a masked position.
    """
    hard = functional.cross_entropy(logits, labels, reduction="none").clamp(min=1e-7)
    scores = torch.full(masked.shape, -torch.inf)
    wanted = torch.full(masked.shape, torch.inf)
    scores[masked] = -hard.log() / ORDER_SCALE
    wanted[masked] = eps
    some = masked.any(-1)
    return functional.cross_entropy(scores[some], wanted[some].argmin(-1))


def masked_loss(
    logits: Tensor,
    labels: Tensor,
    masked: Tensor,
    *,
    weights: Tensor,
    factor: Tensor | None,
    block_length: int,
) -> Tensor:
    """What a training step minimises.

    Args:
        logits: fp32 [R, V], at the masked positions.
        labels: int64 [B, N], the clean tokens.
        masked: bool [B, N], R of them; N a multiple of L.
        weights: fp32 [B, N].
        factor: fp32 [V], how rare tokens are; None leaves plain cross entropy.
        block_length: L.

    Returns:
        fp32 [].
    """
    wanted = labels[masked]
    if factor is None:
        plain = functional.cross_entropy(logits, wanted, reduction="none")
        return (plain * weights[masked]).sum()
    eps = noise_mass(distance(masked, block_length=block_length)[masked], factor[wanted])
    softened = (soft_loss(logits, wanted, eps) * weights[masked]).sum()
    return softened + ORDER_WEIGHT * order_loss(logits, wanted, eps, masked.view(-1, block_length))
