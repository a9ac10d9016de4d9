"""The samplers of released loops over tables, as their descriptions tell them, in fp64.

One sequence, no cache, nothing shared with ``spot`` but the noise and where output may end; for
comparison only.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from spot.limits import Limits
from spot.noise import gumbel
from spot.transition import Rule
from tests.spot.toy import LENGTH, MASK_ID, NUM_TOKENS, Ids, Table

Floats = NDArray[np.float64]
Moves = list[list[tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainLoop:
    """A released loop with its settings."""

    table: Table
    rule: Rule  # read as settings only

    def decode(self, prompt: Ids, *, limits: Limits, key: int) -> Moves:
        """Transitions as (absolute position, token) pairs."""
        ids, moves, step = self._open(list(prompt)), [], 0
        while not self._done(ids, limits):
            start = len(ids) - LENGTH
            move = self._step(ids, start, key=key, step=step)
            for position, token in move:
                assert ids[position] == MASK_ID, "a committed token was overwritten"
                ids[position] = token
            moves.append(move)
            step += 1
            if MASK_ID not in ids:
                ids, step = self._open(ids), 0
        return moves

    def _open(self, ids: list[int]) -> list[int]:
        return ids + [MASK_ID] * (LENGTH - len(ids) % LENGTH)

    def _done(self, ids: list[int], limits: Limits) -> bool:
        for position in range(limits.prompt_tokens, limits.end):
            if position >= len(ids) or ids[position] == MASK_ID:
                return False
            if ids[position] in limits.stop_ids:
                return True
        return True

    def _step(self, ids: list[int], start: int, *, key: int, step: int) -> list[tuple[int, int]]:
        logits = self.table(tuple(ids[:start]), tuple(ids[start:]))[:, :NUM_TOKENS]
        masked = [p for p in range(start, len(ids)) if ids[p] == MASK_ID]
        rows = {p: logits[p - start].astype(np.float64) for p in masked}
        if self.rule.name in ("sequential", "entropy_bounded") or self.rule.temperature == 0.0:
            step_of_noise = 0
        else:
            step_of_noise = step
        tokens = {p: self._draw(rows[p], p, key=key, step=step_of_noise) for p in masked}
        conf = {p: self._confidence(rows[p], tokens[p]) for p in masked}
        return [(p, tokens[p]) for p in sorted(self._transfer(rows, conf, step))]

    def _transfer(self, rows: dict[int, Floats], conf: dict[int, float], step: int) -> list[int]:
        quota = self._schedule()[step] if step < len(self._schedule()) else 1
        surest = sorted(conf, key=lambda p: (-conf[p], p))
        match self.rule.name:
            case "sequential":
                return sorted(rows)[:quota]
            case "low_confidence_static":
                return surest[:quota]
            case "low_confidence_dynamic" | "llada2_threshold":
                assert self.rule.tau is not None
                passing = [p for p in surest if conf[p] > self.rule.tau]
                return passing if len(passing) >= quota else surest[:quota]
        return self._least_entropy(rows)

    def _schedule(self) -> list[int]:
        steps = self.rule.denoising_steps or LENGTH
        return [LENGTH // steps + (step < LENGTH % steps) for step in range(steps)]

    def _least_entropy(self, rows: dict[int, Floats]) -> list[int]:
        temperature, bound = self.rule.temperature or 1.0, self.rule.entropy_bound
        assert bound is not None
        entropies = {}
        for position, row in rows.items():
            law = np.exp((row - row.max()) / temperature)
            law /= law.sum()
            entropies[position] = float(np.float32(-(law * np.log(law)).sum()))
        ranked = sorted(entropies, key=lambda p: (entropies[p], p))
        total, taken = 0.0, []
        for position in ranked:
            total += entropies[position]
            if total >= bound:
                break
            taken.append(position)
        return taken or ranked[:1]

    def _kept(self, row: Floats) -> list[int]:
        """Tokens left by top-k and then top-p, best first."""
        ranked = sorted(range(NUM_TOKENS), key=lambda t: (-row[t], t))
        if self.rule.temperature == 0.0:
            return ranked
        ranked = ranked[: self.rule.top_k or NUM_TOKENS]
        law = np.exp((row[ranked] - row.max()) / self.rule.temperature)
        before = np.concatenate([[0.0], np.cumsum(law / law.sum())[:-1]])
        return [t for t, mass in zip(ranked, before, strict=True) if mass < self.rule.top_p]

    def _draw(self, row: Floats, position: int, *, key: int, step: int) -> int:
        kept = sorted(self._kept(row))
        if self.rule.temperature == 0.0:
            return int(row.argmax())
        signed = key - 2**64 if key >= 2**63 else key
        noise = gumbel(
            torch.tensor([signed]), torch.tensor([position]), torch.tensor([kept]), step=step
        )
        return kept[int((row[kept] / self.rule.temperature + noise[0].numpy()).argmax())]

    def _confidence(self, row: Floats, token: int) -> float:
        """Probability of the token in the law it was drawn from; untempered at temperature 0."""
        temperature = self.rule.temperature or 1.0
        others = sorted((row[t] - row[token]) / temperature for t in self._kept(row) if t != token)
        return 1.0 / (1.0 + math.fsum(map(math.exp, others)))
