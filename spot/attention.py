"""Attention of many block states at once: each sees its own prefix pages and its own block only.

A *unit* is one block of L positions with a page table. Units that finish a block write their keys
and values into a page before anyone attends in that layer, so a unit of the same forward may
already have that page in its table: prefill, the fused store and the opening of the next block are
all the same operation. The prefix is read in fixed chunks of pages, merged in page order, and every
product has one fixed shape per unit and head: neither the number of units nor prefix padding
changes a sum.

Legend: U units, L block length, H query heads, K key heads, G = H / K, D head size, P pages of a
table, C pages of a chunk, W units that write.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

CHUNK_PAGES = 4
NAME = "spotbatch_blocks"


class KVPages:
    """Keys and values of all pages, per layer [pages, K, L, D]."""

    def __init__(self, *, num_layers: int, shape: tuple[int, int, int, int], like: Tensor) -> None:
        self.keys = [
            torch.zeros(shape, dtype=like.dtype, device=like.device) for _ in range(num_layers)
        ]
        self.values = [torch.zeros_like(k) for k in self.keys]

    @property
    def num_pages(self) -> int:
        """Pages in the pool."""
        return self.keys[0].shape[0]

    def write(self, layer: int, pages: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store [W, K, L, D] into the given pages."""
        self.keys[layer][pages] = keys
        self.values[layer][pages] = values


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What attention needs to know about the units of one forward.

    ``chunks`` holds, per chunk of the page tables, the units that have pages there [u], their pages
    [u, C] (padded with page 0) and which of the C * L keys exist, bool [u, 1, 1, C * L].
    """

    pages: KVPages
    writers: Tensor  # int64 [W]
    written: Tensor  # int64 [W]
    chunks: tuple[tuple[Tensor, Tensor, Tensor], ...]


def make_context(
    pages: KVPages, *, tables: list[tuple[int, ...]], writes: list[int], block_length: int
) -> Context:
    """Lay out the page tables of one forward.

    Args:
        pages: the pool.
        tables: per unit, the pages of its prefix in order.
        writes: per unit, the page that receives its keys and values, or -1.
        block_length: L.
    """
    device = pages.keys[0].device
    writers = [unit for unit, page in enumerate(writes) if page >= 0]
    chunks = []
    for first in range(0, max(map(len, tables), default=0), CHUNK_PAGES):
        units = [u for u, table in enumerate(tables) if len(table) > first]
        parts = [tables[u][first : first + CHUNK_PAGES] for u in units]
        padded = [[*part, *([0] * (CHUNK_PAGES - len(part)))] for part in parts]
        present = torch.tensor([len(part) * block_length for part in parts], device=device)
        keys = torch.arange(CHUNK_PAGES * block_length, device=device)
        chunks.append(
            (
                torch.tensor(units, device=device),
                torch.tensor(padded, device=device),
                (keys[None, :] < present[:, None])[:, None, None, :],
            )
        )
    return Context(
        pages=pages,
        writers=torch.tensor(writers, dtype=torch.int64, device=device),
        written=torch.tensor([writes[u] for u in writers], dtype=torch.int64, device=device),
        chunks=tuple(chunks),
    )


def _products(a: Tensor, b: Tensor) -> Tensor:
    """Batched matrix products over the two leading dimensions."""
    flat = torch.bmm(a.flatten(0, 1), b.flatten(0, 1))
    return flat.view(*a.shape[:2], *flat.shape[1:])


def attend(
    query: Tensor, key: Tensor, value: Tensor, *, layer: int, context: Context, scaling: float
) -> Tensor:
    """Attention of all units.

    Args:
        query: [U, H, L, D].
        key: [U, K, L, D], rotated.
        value: [U, K, L, D].
        layer: index of the layer.
        context: page tables and writes.
        scaling: factor of the scores.

    Returns:
        [U, H, L, D].
    """
    pool = context.pages
    if context.writers.numel():
        pool.write(layer, context.written, key[context.writers], value[context.writers])
    grouped = (query * scaling).unflatten(1, (key.shape[1], -1)).flatten(2, 3).contiguous()
    scores = _products(grouped, key.transpose(2, 3).contiguous())
    peak = scores.amax(-1, keepdim=True)
    weights = (scores - peak).exp_()
    total = weights.sum(-1, keepdim=True)
    out = _products(weights, value.contiguous())
    for units, table, present in context.chunks:
        keys = pool.keys[layer][table].transpose(1, 2).flatten(2, 3)
        values = pool.values[layer][table].transpose(1, 2).flatten(2, 3)
        scores = _products(grouped[units], keys.transpose(2, 3).contiguous())
        scores = scores.masked_fill(~present, -torch.inf)
        new_peak = torch.maximum(peak[units], scores.amax(-1, keepdim=True))
        shrink = (peak[units] - new_peak).exp_()
        weights = (scores - new_peak).exp_()
        peak[units] = new_peak
        total[units] = total[units] * shrink + weights.sum(-1, keepdim=True)
        out[units] = out[units] * shrink + _products(weights, values.contiguous())
    return (out / total).view(query.shape)


def attention_function(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    block_context: Context,
    block_length: int,
    **_: Any,
) -> tuple[Tensor, None]:
    """The same in the shapes of transformers' attention interface: units packed as one row."""

    def units(x: Tensor) -> Tensor:
        heads, _, size = x.shape[1:]
        return x[0].view(heads, -1, block_length, size).transpose(0, 1)

    out = attend(
        units(query),
        units(key),
        units(value),
        layer=int(module.layer_idx),  # type: ignore[arg-type]
        context=block_context,
        scaling=scaling,
    )
    return out.transpose(1, 2).flatten(0, 1)[None], None
