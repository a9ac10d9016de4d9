"""Attention of bidirectional targets: of a whole canvas, and of block states against a frozen one.

A state sees the frozen positions of its canvas and its own block. Frozen keys are read in chunks of
one size, so that no product depends on how many states share the forward.

Legend: U units, S states of one canvas, L block length, H query heads, K key heads, G = H / K,
D head size, N canvas positions, T frozen positions, C positions of a chunk.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from spot.targets.base import CanvasUnit, Opened

CANVAS = "spotbatch_canvas"
CHUNK_POSITIONS = 256


@dataclass(slots=True, kw_only=True)
class Opening:
    """Collects keys and values [K, N, D] of every layer while a canvas is evaluated.

    Rows past ``num_positions`` are padding that nobody sees.
    """

    num_positions: int
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


def attend_canvas(
    query: Tensor, key: Tensor, value: Tensor, *, opening: Opening, scaling: float
) -> Tensor:
    """[H, R, D] against [K, R, D], both ways, among the canvas's own rows; returns [H, R, D]."""
    num = opening.num_positions
    opening.keys.append(key[:, :num])
    opening.values.append(value[:, :num])
    groups = query.shape[0] // key.shape[0]
    out = functional.scaled_dot_product_attention(
        query[None, :, :num],
        key[None, :, :num].repeat_interleave(groups, dim=1),
        value[None, :, :num].repeat_interleave(groups, dim=1),
        scale=scaling,
    )[0]
    return functional.pad(out, (0, 0, 0, query.shape[1] - num))


def attend_states(
    query: Tensor, key: Tensor, value: Tensor, *, layer: int, states: States, scaling: float
) -> Tensor:
    """[U, H, L, D] against [U, K, L, D] and what was frozen; returns [U, H, L, D]."""
    out = torch.empty_like(query)
    for units, opened in states.groups:
        frozen = opened.keys[layer], opened.values[layer]
        out[units] = _attend_group(query[units] * scaling, key[units], value[units], *frozen)
    return out


def _attend_group(
    query: Tensor, key: Tensor, value: Tensor, frozen_keys: Tensor, frozen_values: Tensor
) -> Tensor:
    """The states of one canvas: [S, H, L, D] against [S, K, L, D] and [K, T, D]."""
    grouped = query.unflatten(1, (key.shape[1], -1)).flatten(2, 3)
    scores = _products(grouped, key.transpose(2, 3))
    peak = scores.amax(-1, keepdim=True)
    weights = (scores - peak).exp_()
    total, out = weights.sum(-1, keepdim=True), _products(weights, value)
    for keys, values in _chunks(frozen_keys, frozen_values, num_states=len(query)):
        scores = _products(grouped, keys.transpose(2, 3))
        new_peak = torch.maximum(peak, scores.amax(-1, keepdim=True))
        shrink, weights = (peak - new_peak).exp_(), (scores - new_peak).exp_()
        peak, total = new_peak, total * shrink + weights.sum(-1, keepdim=True)
        out = out * shrink + _products(weights, values)
    return (out / total).reshape(query.shape)


def _chunks(keys: Tensor, values: Tensor, *, num_states: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Frozen keys and values of consecutive positions, the same for every state: [S, K, C, D]."""
    for first in range(0, keys.shape[1], CHUNK_POSITIONS):
        chunk = slice(first, first + CHUNK_POSITIONS)
        yield tuple(x[:, chunk].expand(num_states, -1, -1, -1) for x in (keys, values))  # type: ignore[misc]


def _products(a: Tensor, b: Tensor) -> Tensor:
    """Batched matrix products over the two leading dimensions."""
    flat = torch.bmm(a.reshape(-1, *a.shape[2:]), b.reshape(-1, *b.shape[2:]))
    return flat.view(*a.shape[:2], *flat.shape[1:])


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
        out = attend_canvas(query[0], key[0], value[0], opening=canvas, scaling=scaling)
        return out.transpose(0, 1)[None], None
    length = canvas.block_length

    def units(x: Tensor) -> Tensor:
        packed: Tensor = x[0].unflatten(1, (-1, length))
        return packed.transpose(0, 1)

    out = attend_states(
        units(query),
        units(key),
        units(value),
        layer=int(module.layer_idx),  # type: ignore[arg-type]
        states=canvas,
        scaling=scaling,
    )
    return out.transpose(1, 2).flatten(0, 1)[None], None
