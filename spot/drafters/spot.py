"""SPOT: the order model proposes where, stale conditionals propose what, a tree combines them.

Token hypotheses: at temperature 0 the stale best token, and the runner-up where the best has less
than 0.6; above 0 the coupled stale draw, weighted by how likely it is to survive (paper section
4.2; the ablations are those of its table 17).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spot.drafters.base import DraftRequest, Drafts
from spot.drafters.batch import RequestBatch, stack
from spot.drafters.features import stale_features, with_path
from spot.drafters.hypotheses import UNFITTED, Survival, candidates
from spot.drafters.order_model import OrderModel, load_order_model
from spot.drafters.tree import Flags, Floats, Hypotheses, Ints, Scorer, expand_positions, grow
from spot.transition import Rule

HEDGE_BELOW = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotOptions:
    """The recipe; each part can be switched off for comparison."""

    gamma: float = 0.0  # mass floor
    hedge_below: float = HEDGE_BELOW  # a second token where the first has less; 0 switches it off
    merged: bool = True  # equal states are one node
    chain: bool = False  # only the heaviest child of each node
    coupled: bool = True  # above temperature 0, share the target's noise


class SpotDrafter:
    """The learned tree drafter."""

    def __init__(
        self,
        model: OrderModel,
        *,
        rule: Rule,
        mask_id: int,
        survival: Survival = UNFITTED,
        options: SpotOptions | None = None,
    ) -> None:
        self._model, self._rule, self._mask_id = model, rule, mask_id
        self._survival, self._options = survival, options or SpotOptions()

    @classmethod
    def load(
        cls, path: str | Path, *, rule: Rule, mask_id: int, options: SpotOptions | None = None
    ) -> "SpotDrafter":
        """From a drafter directory."""
        model, config = load_order_model(path)
        return cls(
            model, rule=rule, mask_id=mask_id, survival=Survival.of(config, rule), options=options
        )

    @torch.inference_mode()
    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """One tree per request; see ``Drafter.propose``."""
        batch, options = stack(requests, mask_id=self._mask_id), self._options
        expand = expand_positions(
            self._scorer(batch), self._hypotheses(batch), branching=1 if options.chain else None
        )
        bounds = batch.bounds(gamma=options.gamma, merged=options.merged)
        return grow(expand, roots=batch.roots, masked=batch.masked.numpy(), bounds=bounds)

    def _scorer(self, batch: RequestBatch) -> Scorer:
        shared = stale_features(batch.log_probs, batch.doubts, batch.masked, batch.seen)

        def score(owner: Ints, taken: Flags, depth: Ints) -> Floats:
            index, flags = torch.from_numpy(owner), torch.from_numpy(taken)
            depths, at_root = torch.from_numpy(depth), batch.masked[index]
            features = with_path(shared[index], masked=at_root, taken=flags, depth=depths)
            log_q: Tensor = self._model(features, masked=at_root, taken=flags)
            return np.asarray(log_q.exp().numpy(), np.float32)

        return score

    def _hypotheses(self, batch: RequestBatch) -> Hypotheses:
        found = candidates(batch, rule=self._rule, coupled=self._options.coupled, count=2)
        mass = found.probabilities.clone()
        if self._rule.temperature > 0.0:
            mass[..., 1] = 0.0
        mass[..., 1].masked_fill_(mass[..., 0] >= self._options.hedge_below, 0.0)
        if self._rule.temperature == 0.0 or self._options.coupled:
            mass[..., 0] = self._survival(found.margin)
        mass = mass.masked_fill(~batch.masked[..., None], 0.0)
        return Hypotheses(tokens=found.tokens.numpy(), masses=mass.numpy())
