"""Attention of bidirectional targets: of whole canvases, and of block states against frozen ones.

A state sees the frozen positions of its canvas and its own block. The states of one canvas are the
items of one call of PyTorch's fused kernel, each with one fixed shape, so that no sum depends on
how many there are; a canvas that is opened has a call of its own.

Legend: U units, S states of one canvas, L block length, H query heads, K key heads, D head size,
N positions of all canvases, R their rows with padding, T frozen positions.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from spot.attention import as_units
from spot.targets.base import CanvasUnit, Opened

CANVAS = "spotbatch_canvas"


@dataclass(slots=True, kw_only=True)
class Opening:
    """Collects keys and values [K, N, D] of every layer while canvases are evaluated.

    They lie one behind the other; rows past the last one are padding that nobody sees.
    """

    lengths: tuple[int, ...]
    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """The units of one forward by canvas: their indices int64 [S], and what was frozen for them."""

    groups: tuple[tuple[Tensor, Opened], ...]
    block_length: int


def group_states(units: list[CanvasUnit], *, block_length: int, device: torch.device) -> States:
    """Units that share a canvas are evaluated side by side."""
    members: dict[int, tuple[list[int], Opened]] = {}
    for index, unit in enumerate(units):
        members.setdefault(id(unit.opened), ([], unit.opened))[0].append(index)
    groups = tuple((torch.tensor(m, device=device), opened) for m, opened in members.values())
    return States(groups=groups, block_length=block_length)


def attend_canvases(
    query: Tensor, key: Tensor, value: Tensor, *, opening: Opening, scaling: float
) -> Tensor:
    """[H, R, D] against [K, R, D], both ways, among each canvas's rows; returns [H, R, D]."""
    num = sum(opening.lengths)
    opening.keys.append(key[:, :num])
    opening.values.append(value[:, :num])
    own = [x[None, :, :num].split(opening.lengths, dim=2) for x in (query, key, value)]
    out = [_fused(q, k, v, scaling=scaling)[0] for q, k, v in zip(*own, strict=True)]
    return functional.pad(torch.cat(out, dim=1), (0, 0, 0, query.shape[1] - num))


def attend_states(
    query: Tensor, key: Tensor, value: Tensor, *, layer: int, states: States, scaling: float
) -> Tensor:
    """[U, H, L, D] against [U, K, L, D] and what was frozen; returns [U, H, L, D]."""
    out = torch.empty_like(query, memory_format=torch.contiguous_format)
    for units, opened in states.groups:
        keys = _behind(opened.keys[layer], key[units])
        values = _behind(opened.values[layer], value[units])
        out[units] = _fused(query[units], keys, values, scaling=scaling)
    return out


def _behind(frozen: Tensor, own: Tensor) -> Tensor:
    """[K, T, D], the same for every state, then the states' own [S, K, L, D]."""
    return torch.cat([frozen.expand(len(own), -1, -1, -1), own], dim=2)


def _fused(query: Tensor, key: Tensor, value: Tensor, *, scaling: float) -> Tensor:
    """[S, H, L, D] against [S, K, T + L, D], both ways; queries that share a key lie together."""
    grouped = query.unflatten(1, (key.shape[1], -1)).flatten(2, 3)
    out = functional.scaled_dot_product_attention(grouped, key, value, scale=scaling)
    return out.reshape(query.shape)


def attention_function(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    canvas: Opening | States,
    **_: Any,
) -> tuple[Tensor, None]:
    """The same in the shapes of transformers' attention interface: one row of positions."""
    if isinstance(canvas, Opening):
        out = attend_canvases(query[0], key[0], value[0], opening=canvas, scaling=scaling)
        return out.transpose(0, 1)[None], None
    out = attend_states(
        as_units(query, canvas.block_length),
        as_units(key, canvas.block_length),
        as_units(value, canvas.block_length),
        layer=int(module.layer_idx),  # type: ignore[arg-type]
        states=canvas,
        scaling=scaling,
    )
    return out.transpose(1, 2).flatten(0, 1)[None], None
