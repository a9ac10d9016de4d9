"""Oracles that replay a recorded draft-free trajectory; they bound what a drafter could gain.

* *position*: the true positions, filled with stale tokens.
* *token*: the true tokens, in the order of stale confidence.
* *joint*: both.

They cost no forward, and draft nothing where a real drafter could not: at a block's opening, which
no stale conditionals precede (paper section 3.2).
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch

from spot.drafters.base import DraftRequest, Drafts, no_drafts
from spot.drafters.batch import stack
from spot.drafters.chain import by_confidence
from spot.drafters.hypotheses import candidates
from spot.drafters.tree import Ints
from spot.trajectory import Move
from spot.transition import Rule

OracleKind = Literal["position", "token", "joint"]


class OracleDrafter:
    """Proposes the chain that follows a known trajectory."""

    def __init__(
        self, kind: OracleKind, moves: Mapping[int, list[Move]], *, rule: Rule, mask_id: int
    ) -> None:
        """``moves`` are the draft-free transitions of every sample, by sample key."""
        self._kind, self._moves = kind, moves
        self._rule, self._mask_id = rule, mask_id

    @torch.inference_mode()
    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """One chain per request; see ``Drafter.propose``."""
        batch = stack(requests, mask_id=self._mask_id)
        stale = candidates(batch, rule=self._rule, coupled=True, count=1).tokens[..., 0].numpy()
        orders = by_confidence(batch)
        return [self._chain(r, stale[b], orders[b]) for b, r in enumerate(requests)]

    def _chain(self, request: DraftRequest, stale: Ints, order: Ints) -> Drafts:
        ahead = self._ahead(request)
        tokens = stale.copy()
        if self._kind != "position":
            for move in ahead:
                for position, token in move:
                    tokens[position] = token
        if self._kind == "token":
            groups = [order[i : i + 1] for i in range(len(order))]
        else:
            groups = [np.array([position for position, _ in move]) for move in ahead]
        return self._states(request, groups[: request.budget], tokens)

    def _ahead(self, request: DraftRequest) -> list[list[tuple[int, int]]]:
        """The true transitions of the block from the root on, as (position in block, token)."""
        length = len(request.root)
        inside = [
            [(c.position - request.start, c.token) for c in move]
            for move in self._moves[request.key]
            if 0 <= move[0].position - request.start < length
        ]
        return inside[request.step :]

    def _states(self, request: DraftRequest, groups: list[Ints], tokens: Ints) -> Drafts:
        state, states = request.root.copy(), []
        for group in groups:
            state = state.copy()
            state[group] = tokens[group]
            if request.full_states or (state == self._mask_id).any():
                states.append(state)
        if not states:
            return no_drafts(len(request.root))
        num = len(states)
        return Drafts(np.stack(states), np.ones(num, np.float32), np.arange(1, num + 1))
