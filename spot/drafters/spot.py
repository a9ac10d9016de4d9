"""SPOT: the order model proposes where, stale conditionals propose what, a tree combines them.

Token hypotheses: at temperature 0 the stale best token, and the runner-up where the best has less
than 0.6; above 0 the coupled stale draw, weighted by how likely it is to survive.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spot.drafters.base import DraftRequest, Drafts
from spot.drafters.features import stale_features, with_path
from spot.drafters.order_model import OrderModel, load_order_model
from spot.drafters.tree import Flags, Floats, Hypotheses, Ints, grow
from spot.noise import gumbel
from spot.transition import Rule, kept
from spot.verification import signed

HEDGE_BELOW = 0.6


class SpotDrafter:
    """The learned tree drafter."""

    def __init__(
        self,
        model: OrderModel,
        *,
        rule: Rule,
        mask_id: int,
        gamma: float = 0.0,
        survival: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self._model, self._rule, self._mask_id = model, rule, mask_id
        self._gamma, self._survival = gamma, survival

    @classmethod
    def load(
        cls, path: str | Path, *, rule: Rule, mask_id: int, gamma: float = 0.0
    ) -> "SpotDrafter":
        """From a drafter directory."""
        model, config = load_order_model(path)
        return cls(model, rule=rule, mask_id=mask_id, gamma=gamma, survival=config.survival)

    @torch.inference_mode()
    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """One tree per request; see ``Drafter.propose``."""
        roots = np.stack([r.root for r in requests])
        masked = torch.from_numpy(roots == self._mask_id)
        log_probs = torch.from_numpy(np.stack([r.stale.log_probs for r in requests])).float()
        tokens = torch.from_numpy(np.stack([r.stale.tokens for r in requests]))
        doubts = torch.from_numpy(np.stack([r.stale.doubts for r in requests])).float()
        shared = stale_features(log_probs, doubts, masked)

        def scorer(owner: Ints, taken: Flags, depth: Ints) -> Floats:
            index, flags = torch.from_numpy(owner), torch.from_numpy(taken)
            depths, at_root = torch.from_numpy(depth), masked[index]
            features = with_path(shared[index], masked=at_root, taken=flags, depth=depths)
            log_q: Tensor = self._model(features, masked=at_root, taken=flags)
            return np.asarray(log_q.exp().numpy(), np.float32)

        return grow(
            scorer,
            roots=roots,
            max_depth=masked.sum(1).numpy() - np.array([not r.look_through for r in requests]),
            hypotheses=self._hypotheses(requests, log_probs, tokens, masked),
            budgets=np.array([r.budget for r in requests]),
            gamma=self._gamma,
        )

    def _hypotheses(
        self, requests: list[DraftRequest], log_probs: Tensor, tokens: Tensor, masked: Tensor
    ) -> Hypotheses:
        if self._rule.temperature == 0.0:
            two = log_probs[..., :2].exp()
            two[..., 1].masked_fill_(two[..., 0] >= HEDGE_BELOW, 0.0)
            chosen, mass = tokens[..., :2], two
        else:
            chosen, mass = self._coupled_draw(requests, log_probs, tokens, masked)
        mass = mass.masked_fill(~masked[..., None], 0.0)
        return Hypotheses(tokens=chosen.numpy(), masses=mass.numpy())

    def _coupled_draw(
        self, requests: list[DraftRequest], log_probs: Tensor, tokens: Tensor, masked: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The draw that the stale conditionals make with the target's own noise, [B, L, 1]."""
        sequence, position = masked.nonzero(as_tuple=True)
        keys = torch.tensor([signed(r.key) for r in requests])[sequence]
        starts = torch.tensor([r.start for r in requests])[sequence]
        rows, ids = log_probs[sequence, position], tokens[sequence, position]
        noise = gumbel(keys, starts + position, ids)
        perturbed = rows.double() / self._rule.temperature + noise
        perturbed = perturbed.masked_fill(~kept(rows, self._rule), -torch.inf)
        top = perturbed.topk(2, dim=-1)
        margin = (top.values[:, 0] - top.values[:, 1]).clamp(max=50.0).float()
        offset, slope = self._survival
        chosen = torch.zeros_like(tokens[..., :1])
        mass = torch.zeros_like(log_probs[..., :1])
        chosen[sequence, position, 0] = ids.gather(1, top.indices[:, :1])[:, 0]
        mass[sequence, position, 0] = torch.sigmoid(offset + slope * margin)
        return chosen, mass
