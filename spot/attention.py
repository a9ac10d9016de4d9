"""Attention of many block states at once: each sees its own prefix pages and its own block only.

A *unit* is one block of L positions with a page table. Units that finish a block write their keys
and values into a page before anyone attends in that layer, so a unit of the same forward may
already have that page in its table: prefill, the fused store and the opening of the next block are
all the same operation. Units with equally many pages form a *bucket*, one call of PyTorch's fused
kernel: nothing is padded, every unit is an item of the batch with one fixed shape, and the kernel
walks an item's keys in order by itself. So neither the number of units nor what shares the forward
changes a sum.

Legend: U units, L block length, H query heads, K key heads, G = H / K, D head size, P pages of a
table, N units of a bucket, W units that write.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

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
class Bucket:
    """The units of a forward whose page tables have one length."""

    units: Tensor  # int64 [N]
    tables: Tensor  # int64 [N * P], one table after the other

    @property
    def num_pages(self) -> int:
        """P."""
        return self.tables.numel() // self.units.numel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What attention needs to know about the units of one forward."""

    pages: KVPages
    writers: Tensor  # int64 [W]
    written: Tensor  # int64 [W], the page of each writer
    buckets: tuple[Bucket, ...]


def make_context(pages: KVPages, *, tables: list[tuple[int, ...]], writes: list[int]) -> Context:
    """Lay out the page tables of one forward.

    Args:
        pages: the pool.
        tables: per unit, the pages of its prefix in order.
        writes: per unit, the page that receives its keys and values, or -1.
    """
    device = pages.keys[0].device

    def ids(numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=device)

    by_length: dict[int, list[int]] = {}
    for unit, table in enumerate(tables):
        by_length.setdefault(len(table), []).append(unit)
    writers = [unit for unit, page in enumerate(writes) if page >= 0]
    return Context(
        pages=pages,
        writers=ids(writers),
        written=ids([writes[unit] for unit in writers]),
        buckets=tuple(
            Bucket(units=ids(units), tables=ids([page for u in units for page in tables[u]]))
            for units in by_length.values()
        ),
    )


def _behind(pool: Tensor, bucket: Bucket, own: Tensor) -> Tensor:
    """The prefix of a bucket's units, then their own blocks: [N, K, (P + 1) * L, D].

    Args:
        pool: keys or values of a layer, [pages, K, L, D].
        bucket: the units.
        own: the same of the units' own blocks, [N, K, L, D].
    """
    if bucket.num_pages == 0:
        return own
    prefix = pool.index_select(0, bucket.tables).unflatten(0, (-1, bucket.num_pages))
    return torch.cat([prefix.transpose(1, 2), own[:, :, None]], dim=2).flatten(2, 3)


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
    grouped = query.unflatten(1, (key.shape[1], -1)).flatten(2, 3)
    out = torch.empty_like(grouped, memory_format=torch.contiguous_format)
    for bucket in context.buckets:
        mine = bucket.units
        out[mine] = functional.scaled_dot_product_attention(
            grouped[mine],
            _behind(pool.keys[layer], bucket, key[mine]),
            _behind(pool.values[layer], bucket, value[mine]),
            scale=scaling,
        )
    return out.view(query.shape)


def as_units(packed: Tensor, block_length: int) -> Tensor:
    """Units packed as one row, [1, H, U * L, D], apart: [U, H, L, D]."""
    apart: Tensor = packed[0].unflatten(1, (-1, block_length))
    return apart.transpose(0, 1)


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
    out = attend(
        as_units(query, block_length),
        as_units(key, block_length),
        as_units(value, block_length),
        layer=int(module.layer_idx),  # type: ignore[arg-type]
        context=block_context,
        scaling=scaling,
    )
    return out.transpose(1, 2).flatten(0, 1)[None], None
