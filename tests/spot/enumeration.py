"""Decoding over tables from its definition, in fp64: one trajectory, or the exact law of them all.

Independent of ``spot`` but for the noise and the places where output may end; for comparison only.
"""

import math
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray

from spot.limits import Limits
from spot.noise import gumbel_rows
from spot.transition import Rule
from tests.spot.toy import LENGTH, MASK_ID, NUM_TOKENS, Ids, Table

# Moves of (absolute position, token).
Path = tuple[tuple[tuple[int, int], ...], ...]
Floats = NDArray[np.float64]


class Enumeration:
    """All that can happen to one prompt."""

    def __init__(
        self, table: Table, *, prompt: Ids, rule: Rule, limits: Limits, length: int = LENGTH
    ) -> None:
        self._table, self._prompt, self._length = table, prompt, length
        self._rule, self._limits = rule, limits

    def decode(self, key: int) -> Path:
        """The trajectory under a sample key."""
        ids = self._open(self._prompt)
        path: Path = ()
        while not self._done(ids):
            rows = self._selected(ids)
            move = tuple((p, self._drawn(p, row, key)) for p, row in rows)
            ids, path = self._after(ids, move), (*path, move)
        return path

    def law(self) -> dict[Path, float]:
        """Every trajectory with its probability."""
        found: dict[Path, float] = {}
        ahead: list[tuple[Path, Ids, float]] = [((), self._open(self._prompt), 1.0)]
        while ahead:
            path, ids, mass = ahead.pop()
            if self._done(ids):
                found[path] = mass
                continue
            rows = self._selected(ids)
            for tokens in product(range(NUM_TOKENS), repeat=len(rows)):
                move = tuple((p, t) for (p, _), t in zip(rows, tokens, strict=True))
                factor = math.prod(
                    float(self._law(row)[t]) for (_, row), t in zip(rows, tokens, strict=True)
                )
                if factor > 0.0:
                    ahead.append(((*path, move), self._after(ids, move), mass * factor))
        return found

    def _open(self, ids: Ids) -> Ids:
        return ids + (MASK_ID,) * (self._length - len(ids) % self._length)

    def _after(self, ids: Ids, move: tuple[tuple[int, int], ...]) -> Ids:
        tokens = list(ids)
        for position, token in move:
            tokens[position] = token
        return tuple(tokens) if MASK_ID in tokens else self._open(tuple(tokens))

    def _done(self, ids: Ids) -> bool:
        limits = self._limits
        for position in range(limits.prompt_tokens, limits.end):
            if position >= len(ids) or ids[position] == MASK_ID:
                return False
            late_enough = position >= limits.prompt_tokens + limits.min_tokens
            if late_enough and ids[position] in limits.stop_ids:
                return True
        return True

    def _selected(self, ids: Ids) -> list[tuple[int, Floats]]:
        """Absolute positions that commit next, with the logits of their tokens."""
        start = len(ids) - self._length
        logits = self._table(ids[:start], ids[start:])[:, :NUM_TOKENS].astype(np.float64)
        masked = [p for p in range(self._length) if ids[start + p] == MASK_ID]
        conf = {p: _confidence(logits[p]) for p in masked}
        tau = math.inf if self._rule.tau is None else self._rule.tau
        chosen = [p for p in masked if conf[p] > math.log(tau)]
        chosen = chosen or [max(masked, key=lambda p: (conf[p], -p))]
        return [(start + p, logits[p]) for p in chosen]

    def _law(self, logits: Floats) -> Floats:
        """Law of a token: tempered, then top-k, then top-p."""
        rule, ranked = self._rule, sorted(range(NUM_TOKENS), key=lambda t: (-logits[t], t))
        law = np.zeros(NUM_TOKENS)
        if rule.temperature == 0.0:
            law[ranked[0]] = 1.0
            return law
        ranked = ranked[: rule.top_k or NUM_TOKENS]
        law[ranked] = np.exp((logits[ranked] - logits.max()) / rule.temperature)
        law /= law.sum()
        before = np.concatenate([[0.0], np.cumsum(law[ranked])[:-1]])
        law[[t for t, mass in zip(ranked, before, strict=True) if mass >= rule.top_p]] = 0.0
        return np.asarray(law / law.sum())

    def _drawn(self, position: int, logits: Floats, key: int) -> int:
        law = self._law(logits)
        if self._rule.temperature == 0.0:
            return int(law.argmax())
        signed = key - 2**64 if key >= 2**63 else key
        keys, positions = torch.tensor([signed]), torch.tensor([position])
        noise = gumbel_rows(keys, positions, vocab_size=NUM_TOKENS)[0].numpy()
        scores = np.where(law > 0.0, logits / self._rule.temperature + noise, -np.inf)
        return int(scores.argmax())


def _confidence(logits: Floats) -> float:
    """Log of the top probability, from the others."""
    others = np.delete(np.exp(logits - logits.max()), logits.argmax())
    return -math.log1p(others.sum())
