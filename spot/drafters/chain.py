"""A chain in the order of stale confidence, as in SSD (Gao et al., 2025); no model.

Drawn instead of guessed, its links come with their laws, for rejection sampling.
"""

import numpy as np
import torch

from spot.drafters.base import DraftRequest, Drafts, Proposal
from spot.drafters.batch import RequestBatch, stack
from spot.drafters.hypotheses import candidates
from spot.drafters.tree import Ints
from spot.noise import DRAFTS, gumbel
from spot.transition import Rule, law

SSD_DEPTH = 4


def by_confidence(batch: RequestBatch) -> list[Ints]:
    """Each sequence's masked positions, the surest first; ties to the lowest position."""
    doubts = batch.doubts.masked_fill(~batch.masked, torch.inf)
    order = doubts.sort(dim=-1, stable=True).indices.numpy()
    return [row[:num] for row, num in zip(order, batch.masked.sum(1).tolist(), strict=True)]


def fill(root: Ints, positions: Ints, tokens: Ints) -> Ints:
    """States [D, L] that fill the first 1, 2, .. D of the positions."""
    states = np.repeat(root[None], len(positions), axis=0)
    for link, (position, token) in enumerate(zip(positions, tokens, strict=True)):
        states[link:, position] = token
    return states


class ChainDrafter:
    """The free chain."""

    def __init__(
        self,
        *,
        rule: Rule,
        mask_id: int,
        coupled: bool = True,
        sampled: bool = False,
        depth: int = SSD_DEPTH,
    ) -> None:
        """``sampled``: draw tokens with noise of their own, and say from which law."""
        self._rule, self._mask_id, self._depth = rule, mask_id, depth
        self._coupled, self._sampled = coupled, sampled

    @torch.inference_mode()
    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """One chain per request; see ``Drafter.propose``."""
        batch = stack(requests, mask_id=self._mask_id)
        found = candidates(batch, rule=self._rule, coupled=self._coupled, count=1)
        chains = []
        for b, (request, order) in enumerate(zip(requests, by_confidence(batch), strict=True)):
            links = order[
                : min(request.budget, self._depth, len(order) - (not request.full_states))
            ]
            proposals: tuple[Proposal, ...] = ()
            tokens = found.tokens[b, links, 0].numpy()
            if self._sampled:
                proposals = tuple(self._draw(batch, b, request, links))
                tokens = np.array([p.token for p in proposals], np.int64)
            states = fill(request.root, links, tokens)
            mass = np.cumprod(found.probabilities[b, links, 0].numpy())
            chains.append(Drafts(states, mass, np.arange(1, len(links) + 1), proposals))
        return chains

    def _draw(
        self, batch: RequestBatch, b: int, request: DraftRequest, links: Ints
    ) -> list[Proposal]:
        return [
            self._link(batch, b, int(position), step=request.step + link)
            for link, position in enumerate(links)
        ]

    def _link(self, batch: RequestBatch, b: int, position: int, *, step: int) -> Proposal:
        q = torch.zeros_like(batch.log_probs[b], dtype=torch.float64)
        q[position] = law(batch.log_probs[b, position][None], self._rule)[0]
        ids = batch.tokens[b, position][None]
        where = batch.starts[b : b + 1] + position
        noise = gumbel(batch.keys[b : b + 1], where, ids, step=step, stream=DRAFTS)[0]
        drawn = int(ids[0, (q[position].log() + noise).argmax()])
        return Proposal(position, drawn, batch.tokens[b].numpy(), q.numpy())
