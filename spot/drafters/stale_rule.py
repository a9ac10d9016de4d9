"""A chain by the target's own rule, applied again and again to stale conditionals; no model.

The schedule and the noise of every later step are known in advance, only the conditionals are a
guess; so it drafts for the samplers of released loops too.

Legend: B sequences, L block length, K stale candidates, R masked positions.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spot.drafters.base import DraftRequest, Drafts
from spot.drafters.batch import RequestBatch, stack
from spot.drafters.hypotheses import MAX_MARGIN, UNFITTED
from spot.noise import gumbel
from spot.released import choose, drawn_confidence, entropy
from spot.transition import Rule, tempered, weighed


class Guess(NamedTuple):
    """What a level's positions would commit; zeros and -inf where nothing is masked."""

    tokens: Tensor  # int64 [B, L]
    scores: Tensor  # fp64 [B, L], as of ``spot.released.choose``
    log_masses: Tensor  # fp32 [B, L], of the token being right


class StaleRuleDrafter:
    """Guesses every transition from the same stale conditionals."""

    def __init__(self, *, rule: Rule, mask_id: int, coupled: bool = True) -> None:
        """``coupled``: share the target's noise; otherwise guess best tokens."""
        self._rule, self._mask_id, self._coupled = rule, mask_id, coupled

    @torch.inference_mode()
    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """One chain per request; see ``Drafter.propose``."""
        batch = stack(requests, mask_id=self._mask_id)
        steps = torch.tensor([r.step for r in requests])
        states, masked = torch.from_numpy(batch.roots).clone(), batch.masked.clone()
        mass = torch.zeros(len(requests))
        levels = []
        for depth in range(max(r.budget for r in requests)):
            if not masked.any():
                break
            guess = self._guess(batch, masked, steps + depth)
            chosen = choose(guess.scores, steps=steps + depth, rule=self._rule).chosen & masked
            states = torch.where(chosen, guess.tokens, states)
            mass = mass + torch.where(chosen, guess.log_masses, 0.0).sum(-1)
            levels.append((states.numpy(), mass.exp().numpy(), chosen.any(-1).numpy()))
            masked = masked & ~chosen
        return [self._chain(b, request, levels) for b, request in enumerate(requests)]

    def _chain(
        self,
        b: int,
        request: DraftRequest,
        levels: list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.bool_]]],
    ) -> Drafts:
        """A sequence's part of the levels: until it was full, within its budget."""
        own = [(states[b], mass[b]) for states, mass, moved in levels if moved[b]]
        if not request.full_states:
            own = [(s, m) for s, m in own if (s == self._mask_id).any()]
        own = own[: request.budget]
        states = np.array([s for s, _ in own], np.int64).reshape(len(own), len(request.root))
        masses = np.array([m for _, m in own], np.float32)
        return Drafts(states, masses, np.arange(1, len(own) + 1))

    def _guess(self, batch: RequestBatch, masked: Tensor, steps: Tensor) -> Guess:
        """What the rule would do at the level's states if nothing had changed."""
        sequence, position = masked.nonzero(as_tuple=True)
        logs = batch.log_probs[sequence, position]
        score = self._perturbed(batch, sequence, position, steps)
        top = score.topk(2, dim=-1)
        margin = (top.values[:, 0] - top.values[:, 1]).clamp(max=MAX_MARGIN).float()
        best = top.indices[:, :1]
        guess = Guess(
            torch.zeros(masked.shape, dtype=torch.int64),
            torch.full(masked.shape, -torch.inf, dtype=torch.float64),
            torch.zeros(masked.shape),
        )
        ids = batch.tokens[sequence, position]
        guess.tokens[sequence, position] = ids.gather(1, best)[:, 0]
        guess.log_masses[sequence, position] = UNFITTED(margin).log()
        guess.scores[sequence, position] = self._scores(
            logs, best[:, 0], position, self._sure(batch, sequence, position)
        )
        return guess

    def _perturbed(
        self, batch: RequestBatch, sequence: Tensor, position: Tensor, steps: Tensor
    ) -> Tensor:
        """What the tokens are ranked by, fp64 [R, K]."""
        logs = batch.log_probs[sequence, position]
        if self._rule.temperature == 0.0:
            return logs.double()
        scaled = tempered(logs, self._rule)
        if not self._coupled:
            return scaled
        counted = steps[sequence] if self._rule.looks_at_noise else 0
        where, ids = batch.starts[sequence] + position, batch.tokens[sequence, position]
        return scaled + gumbel(batch.keys[sequence], where, ids, step=counted)

    def _sure(self, batch: RequestBatch, sequence: Tensor, position: Tensor) -> Tensor:
        """What our own rules would select by, fp64 [R]."""
        conf = -batch.doubts[sequence, position].double().exp()
        return weighed(conf, batch.tokens[sequence, position, 0], self._rule)

    def _scores(self, logs: Tensor, which: Tensor, position: Tensor, sure: Tensor) -> Tensor:
        """What positions are selected by, fp64 [R]; ``which`` candidate each would commit."""
        if self._rule.name == "sequential":
            return -position.double()
        if self._rule.name == "entropy_bounded":
            return -entropy(logs, self._rule)
        if self._rule.looks_at_noise:
            return drawn_confidence(logs, which, self._rule)
        return sure
