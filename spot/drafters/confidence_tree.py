"""A best-first tree over renormalised stale confidences, as SPOT describes its BlockSpec stand-in.

The edge to position s weighs ``conf_s / sum of conf`` over the positions that are masked at the
node; the token is the best stale one, or the coupled stale draw. No model.
"""

import numpy as np
import torch

from spot.drafters.base import DraftRequest, Drafts
from spot.drafters.batch import stack
from spot.drafters.hypotheses import candidates
from spot.drafters.tree import Flags, Floats, Hypotheses, Ints, expand_positions, grow
from spot.transition import Rule


class ConfidenceTreeDrafter:
    """The confidence tree."""

    def __init__(self, *, rule: Rule, mask_id: int, coupled: bool = True) -> None:
        self._rule, self._mask_id, self._coupled = rule, mask_id, coupled

    @torch.inference_mode()
    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """One tree per request; see ``Drafter.propose``."""
        batch = stack(requests, mask_id=self._mask_id)
        found = candidates(batch, rule=self._rule, coupled=self._coupled, count=1)
        conf = batch.log_probs[..., 0].exp().masked_fill(~batch.masked, 0.0).numpy()

        def score(owner: Ints, taken: Flags, depth: Ints) -> Floats:
            weights = np.where(taken, 0.0, conf[owner])
            return np.asarray(weights / weights.sum(1, keepdims=True), np.float32)

        masses = batch.masked[..., None].float().numpy()
        hypotheses = Hypotheses(tokens=found.tokens.numpy(), masses=masses)
        expand = expand_positions(score, hypotheses)
        return grow(expand, roots=batch.roots, masked=batch.masked.numpy(), bounds=batch.bounds())
