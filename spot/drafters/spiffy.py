"""Spiffy (Agrawal et al., 2026): drafts along a graph of rank formulas, calibrated offline.

A formula names positions by the rank of their stale confidence and tokens by the rank of their
hypothesis; instantiated at a root it is a state. The formula is a set, so that states merge by
themselves, and a node may be reached through any of its parents.

Legend: D drafts, L block length, M masked positions, J token ranks.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from spot.drafters.base import DraftRequest, Drafts
from spot.drafters.batch import stack
from spot.drafters.chain import by_confidence
from spot.drafters.hypotheses import candidates
from spot.drafters.spiffy_graph import TOKEN_RANKS, SpiffyGraph, read_graph
from spot.drafters.tree import Floats, Ints
from spot.transition import Rule


class Ranking(NamedTuple):
    """What the ranks mean at one root."""

    positions: Ints  # [M], in the block, the surest first
    tokens: Ints  # [M, J], hypotheses of these positions, best first
    probabilities: Floats  # [M, J], stale; 0 where the rule never draws the token


def rankings(
    requests: list[DraftRequest], *, rule: Rule, mask_id: int, coupled: bool
) -> list[Ranking]:
    """Rank what is masked at each root by its stale conditionals; the same in calibration and use.

    Always over all token ranks: how ties are broken may depend on how many are asked for.
    """
    batch = stack(requests, mask_id=mask_id)
    found = candidates(batch, rule=rule, coupled=coupled, count=TOKEN_RANKS)
    tokens, probabilities = found.tokens.numpy(), found.probabilities.numpy()
    return [
        Ranking(positions, tokens[b, positions], probabilities[b, positions])
        for b, positions in enumerate(by_confidence(batch))
    ]


class SpiffyDrafter:
    """The draft graph, instantiated at each root."""

    def __init__(
        self, graph: SpiffyGraph, *, rule: Rule, mask_id: int, coupled: bool = True
    ) -> None:
        self._rule, self._mask_id, self._coupled = rule, mask_id, coupled
        self._formulas = [np.array(node.pairs).T for node in graph.nodes]
        self._sizes = np.array([len(node.pairs) for node in graph.nodes], np.int64)
        self._last_rank = np.array([node.pairs[-1][0] for node in graph.nodes], np.int64)
        self._masses = np.array(graph.masses(), np.float32)
        self._depths = np.array(graph.depths(), np.int64)

    @classmethod
    def load(
        cls, path: str | Path, *, rule: Rule, mask_id: int, coupled: bool = True
    ) -> "SpiffyDrafter":
        """From a drafter directory.

        Raises:
            DrafterError: it holds no usable graph.
        """
        return cls(read_graph(path), rule=rule, mask_id=mask_id, coupled=coupled)

    @torch.inference_mode()
    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """One graph per request; see ``Drafter.propose``."""
        ranked = rankings(requests, rule=self._rule, mask_id=self._mask_id, coupled=self._coupled)
        return [self._drafts(r, ranking) for r, ranking in zip(requests, ranked, strict=True)]

    def _drafts(self, request: DraftRequest, ranking: Ranking) -> Drafts:
        nodes = self._usable(request, num_masked=len(ranking.positions))
        states = np.repeat(request.root[None], len(nodes), axis=0)
        for state, node in zip(states, nodes, strict=True):
            position_ranks, token_ranks = self._formulas[node]
            state[ranking.positions[position_ranks]] = ranking.tokens[position_ranks, token_ranks]
        return Drafts(states, self._masses[nodes], self._depths[nodes])

    def _usable(self, request: DraftRequest, *, num_masked: int) -> Ints:
        """The first nodes that fit, within the budget, in descending mass.

        A node that does not fit has no child that does, and no node outweighs all of its parents:
        both the choice and its order stay connected.
        """
        room = num_masked - (not request.full_states)
        fits = (self._last_rank < num_masked) & (self._sizes <= room)
        nodes = np.flatnonzero(fits)[: request.budget]
        return nodes[np.argsort(-self._masses[nodes], kind="stable")]
