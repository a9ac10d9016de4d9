"""Mixtures of experts whose rows do not depend on their company.

A row's experts are summed in the order of their numbers; an expert's rows are computed in whole
tiles and its inner dimensions in fixed chunks, like every other product; ties between experts or
groups go to the lowest number.

Legend: R rows, E width, X experts, G groups, I inner size of an expert, k experts of a row.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.glm4_moe.modeling_glm4_moe import Glm4MoeExperts, Glm4MoeTopkRouter

from spot.numerics import linear_in_chunks, pad_rows


class OrderedRouter(nn.Module):
    """Chooses the experts of each row: the best groups by their two best, then the best experts."""

    def __init__(self, router: Any) -> None:
        """Take over a router's weights."""
        super().__init__()
        self.weight, self._k = router.weight, router.top_k
        self.e_score_correction_bias = nn.Buffer(router.e_score_correction_bias)
        self._num_groups, self._groups_kept = router.num_group, router.topk_group
        self._scale, self._normed = router.routed_scaling_factor, router.norm_topk_prob

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[.., E] to logits [R, X], weights [R, k] and experts int64 [R, k], ascending; in fp32."""
        logits = linear_in_chunks(x.reshape(-1, x.shape[-1]).float(), self.weight.float())
        scores = logits.sigmoid()
        experts = self._choose(scores + self.e_score_correction_bias)
        weights = scores.gather(1, experts)
        if self._normed:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        return logits, weights * self._scale, experts

    def _choose(self, merits: Tensor) -> Tensor:
        """Merits [R, X] to experts int64 [R, k]."""
        grouped = merits.unflatten(1, (self._num_groups, -1))
        worth = grouped.topk(2, dim=-1).values.sum(-1)
        groups = _best(worth, self._groups_kept)
        dropped = torch.ones_like(worth, dtype=torch.bool).scatter_(1, groups, False)
        left = grouped.masked_fill(dropped[..., None], -torch.inf).flatten(1)
        return _best(left, self._k).sort(-1).values


def _best(merits: Tensor, num: int) -> Tensor:
    """Indices of the largest entries of each row, ties to the lowest."""
    return merits.sort(dim=-1, descending=True, stable=True).indices[:, :num]


class OrderedExperts(nn.Module):
    """Stacked experts: gate and up projection [X, 2I, E], down projection [X, E, I]."""

    def __init__(self, experts: Any) -> None:
        """Take over the experts' weights."""
        super().__init__()
        self.gate_up_proj, self.down_proj = experts.gate_up_proj, experts.down_proj
        self._activation = experts.act_fn

    def forward(self, x: Tensor, experts: Tensor, weights: Tensor) -> Tensor:
        """[R, E] with experts int64 [R, k] and weights [R, k] to [R, E]."""
        out = torch.zeros_like(x)
        for expert in experts.unique().tolist():
            rows, place = (experts == expert).nonzero(as_tuple=True)
            made = self._one(pad_rows(x[rows]), expert)[: len(rows)]
            out[rows] += (made * weights[rows, place, None]).to(out.dtype)
        return out

    def _one(self, x: Tensor, expert: int) -> Tensor:
        gate, up = linear_in_chunks(x, self.gate_up_proj[expert]).chunk(2, dim=-1)
        return linear_in_chunks(self._activation(gate) * up, self.down_proj[expert])


def order_experts(module: nn.Module) -> None:
    """Replace, in place, every mixture's router and experts."""
    for name, child in module.named_children():
        if isinstance(child, Glm4MoeTopkRouter):
            setattr(module, name, OrderedRouter(child))
        elif isinstance(child, Glm4MoeExperts):
            setattr(module, name, OrderedExperts(child))
        else:
            order_experts(child)
