"""Decoding of LLaDA-8B and Dream-7B as their description tells it, for comparison only.

One sequence, no batching: the whole canvas when a block opens, then the block's rows against what
that forward froze. Built on the plain forward, which shares nothing with ``spot``.

Legend: N positions, T frozen positions, L positions of a block, V vocabulary.
"""

import math
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from spot.noise import gumbel_rows
from spot.targets.base import CacheContext
from tests.checkpoints import FamilyName, specials_of
from tests.spot.plain_models import PlainModel

KeysAndValues = tuple[Tensor, Tensor]


class _Rows(PlainModel):
    """The plain forward of some rows, beside keys and values that were computed before."""

    def __init__(self, directory: Path, *, block_length: int) -> None:
        super().__init__(directory, block_length=block_length, dtype=torch.float64)
        self.shifted, self._parts.shifted = self._parts.shifted, False
        self._first = 0
        self._frozen: list[KeysAndValues] = []
        self.seen: list[KeysAndValues] = []

    def rows(self, ids: list[int], *, first: int, frozen: list[KeysAndValues]) -> Tensor:
        """Logits [N, V], not shifted, of positions ``first`` and on; keeps keys and values."""
        self._first, self._frozen, self.seen = first, frozen, []
        return self.logits(ids)

    def _angles(self, num: int) -> tuple[Tensor, Tensor]:
        cos, sin = super()._angles(self._first + num)
        return cos[self._first :], sin[self._first :]

    def _attention(self, layer: int, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        query, key, value = self._parts.heads(layer, x)
        query, key = self._rotate(query, cos, sin), self._rotate(key, cos, sin)
        self.seen.append((key, value))
        if self._frozen:
            key = torch.cat([self._frozen[layer][0], key])
            value = torch.cat([self._frozen[layer][1], value])
        share = query.shape[1] // key.shape[1]
        out = torch.empty_like(query)
        for head in range(query.shape[1]):
            scores = query[:, head] @ key[:, head // share].T / key.shape[-1] ** 0.5
            out[:, head] = scores.softmax(-1) @ value[:, head // share]
        return out.flatten(1) @ self._parts.output(layer).T


class Frozen(NamedTuple):
    """What an opening left."""

    layers: list[KeysAndValues]
    before: Tensor | None  # logits [V] of the position before the block


class PlainCanvas:
    """Strict decoding of one sample."""

    def __init__(self, family: FamilyName, directory: Path, *, block_length: int) -> None:
        self._model, self._length = _Rows(directory, block_length=block_length), block_length
        specials = specials_of(family)
        self._num_tokens = specials.first + len(specials.tokens)
        masks = ("<|mask|>", "<|mdm_mask|>")
        (self._mask,) = (specials.id_of(m) for m in masks if m in specials.tokens)

    def decode(
        self,
        prompt: list[int],
        *,
        max_tokens: int,
        context: CacheContext,
        temperature: float = 0.0,
        key: int = 0,
    ) -> list[tuple[int, int]]:
        """Commits (position, token) in order, to the end of the budget; nothing stops early."""
        ids = prompt + [self._mask] * (math.ceil(max_tokens / self._length) * self._length)
        commits: list[tuple[int, int]] = []
        for start in range(len(prompt), len(ids), self._length):
            end = start + self._length
            logits, frozen = self._open(ids, start, context)
            while self._mask in ids[start : min(end, len(prompt) + max_tokens)]:
                commit = self._commit(ids, logits, start, temperature=temperature, key=key)
                commits.append(commit)
                ids[commit[0]] = commit[1]
                logits = self._again(ids[start:end], start, frozen)
        return commits

    def _open(self, ids: list[int], start: int, context: CacheContext) -> tuple[Tensor, Frozen]:
        rows = self._model.rows(ids, first=0, frozen=[])
        outside = [p for p in range(len(ids)) if not start <= p < start + self._length]
        kept = [p for p in outside if p < start or context == "prefix+suffix"]
        before = rows[start - 1] if start else None
        frozen = Frozen([(k[kept], v[kept]) for k, v in self._model.seen], before)
        return self._aligned(rows[start : start + self._length], frozen), frozen

    def _again(self, block: list[int], start: int, frozen: Frozen) -> Tensor:
        return self._aligned(self._model.rows(block, first=start, frozen=frozen.layers), frozen)

    def _aligned(self, rows: Tensor, frozen: Frozen) -> Tensor:
        if not self._model.shifted:
            return rows
        first = rows[0] if frozen.before is None else frozen.before
        return torch.cat([first[None], rows[:-1]])

    def _commit(
        self, ids: list[int], logits: Tensor, start: int, *, temperature: float, key: int
    ) -> tuple[int, int]:
        logits = logits.clone()
        logits[:, self._mask] = -torch.inf
        logits[:, self._num_tokens :] = -torch.inf
        masked = [p for p in range(self._length) if ids[start + p] == self._mask]
        best = max(masked, key=lambda p: (_confidence(logits[p]), -p))
        row = logits[best]
        if temperature > 0.0:
            keys, positions = torch.tensor([key]), torch.tensor([start + best])
            noise = gumbel_rows(keys, positions, vocab_size=len(row))[0]
            row = row / temperature + noise
        return start + best, int(row.argmax())


def _confidence(row: Tensor) -> float:
    """Log of the top probability, from the others."""
    others = (row - row.max()).exp()
    others[row.argmax()] = 0.0
    return -float(torch.log1p(others.sum()))
