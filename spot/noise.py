"""Counter-based Gumbel noise: a pure function of (sample key, position, token, step, stream).

Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) in torch int64
arithmetic, so that every device computes the same words. Nothing here keeps a state.

Streams: 0 commits, 1 acceptance tests, 2 residual draws, 3 draft draws. Streams 1 to 3 always carry
the step: keyed by position alone, rejection sampling would be biased.

Legend: R rows, C counters of a row, V tokens.
"""

import torch
from torch import Tensor

COMMITS, ACCEPTANCE, RESIDUAL, DRAFTS = 0, 1, 2, 3
_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF


def _multiply(word: Tensor, multiplier: int) -> tuple[Tensor, Tensor]:
    """High and low 32 bits of a 32-by-32-bit product; int64 wraps modulo 2**64."""
    product = word * multiplier
    return (product >> 32) & _WORD, product & _WORD


def philox(counter: tuple[Tensor, ...], key: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """Philox4x32-10.

    Args:
        counter: four int64 tensors of 32-bit words, broadcastable against each other.
        key: two int64 tensors of 32-bit words, low word first.

    Returns:
        Four int64 tensors of 32-bit words.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        high0, low0 = _multiply(c0, _MULTIPLIERS[0])
        high1, low1 = _multiply(c2, _MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + _WEYL[0]) & _WORD, (k1 + _WEYL[1]) & _WORD
    return c0, c1, c2, c3


def gumbel(
    keys: Tensor,
    positions: Tensor,
    tokens: Tensor,
    *,
    step: int | Tensor = 0,
    stream: int = COMMITS,
) -> Tensor:
    """Standard Gumbel noise of given tokens.

    ``g = -log(-log1p(-u))`` with ``u = (r + 0.5) * 2**-32`` in fp64: in fp32 the largest u rounds
    to 1 and the winning tail is lost.

    Args:
        keys: sample keys, int64 [R] (the 64 bits of an unsigned key).
        positions: absolute positions, int64 [R].
        tokens: token ids, int64 [R, C].
        step: transitions made in the block before this state, of all rows or int64 [R]; 0 under
            noise-free selection.
        stream: which use of noise this is.

    Returns:
        fp64 [R, C].
    """
    return _gumbel(uniform(keys, positions, tokens, step=step, stream=stream))


def uniform(
    keys: Tensor, positions: Tensor, tokens: Tensor, *, step: int | Tensor, stream: int
) -> Tensor:
    """Uniform noise in (0, 1) of given tokens; arguments and shapes as of ``gumbel``."""
    low, high = (keys & _WORD)[:, None], ((keys >> 32) & _WORD)[:, None]
    steps = torch.as_tensor(step, device=keys.device).expand(len(keys))[:, None]
    fixed = steps, torch.tensor(stream, device=keys.device)
    words = philox((tokens >> 2, positions[:, None].expand_as(tokens), *fixed), (low, high))
    chosen = torch.stack(torch.broadcast_tensors(*words), dim=-1)
    r = chosen.gather(-1, (tokens & 3)[..., None])[..., 0]
    return _unit(r)


def _unit(r: Tensor) -> Tensor:
    """32-bit words into (0, 1)."""
    return (r.double() + 0.5) * 2.0**-32


def _gumbel(u: Tensor) -> Tensor:
    return -torch.log(-torch.log1p(-u))


def gumbel_rows(
    keys: Tensor, positions: Tensor, *, vocab_size: int, steps: Tensor | None = None
) -> Tensor:
    """Noise of the whole vocabulary, fp64 [R, V]: one Philox call makes four tokens.

    ``steps`` [R] are 0 where they are left out: selection does not look at the noise.
    """
    low, high = (keys & _WORD)[:, None], ((keys >> 32) & _WORD)[:, None]
    quads = torch.arange((vocab_size + 3) // 4, device=keys.device)[None]
    step = (torch.zeros_like(keys) if steps is None else steps)[:, None]
    stream = torch.full_like(quads, COMMITS)
    words = philox((quads, positions[:, None], step, stream), (low, high))
    r = torch.stack(torch.broadcast_tensors(*words), dim=-1).flatten(1)[:, :vocab_size]
    return _gumbel(_unit(r))
