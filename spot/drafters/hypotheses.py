"""Token hypotheses: what a masked position would hold if it committed next, by stale conditionals.

At temperature 0 the stale candidates by probability. Above 0, *coupled*: by the draw that the stale
conditionals make with the target's own noise; *uncoupled*: by their tempered probability.

Legend: B sequences, L block length, K stale candidates, Y hypotheses, R masked positions.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from spot.drafters.batch import RequestBatch
from spot.drafters.checkpoint import DrafterConfig
from spot.noise import gumbel
from spot.transition import Rule, kept, law

MAX_MARGIN = 50.0


class Survival(NamedTuple):
    """How likely the first hypothesis is right when its position commits, by its margin."""

    offset: float
    slope: float

    @classmethod
    def of(cls, config: DrafterConfig, rule: Rule) -> "Survival":
        """As fitted for a drafter."""
        return cls(*(config.survival if rule.temperature > 0.0 else config.greedy_survival))

    def __call__(self, margin: Tensor) -> Tensor:
        """Probability, elementwise."""
        return torch.sigmoid(self.offset + self.slope * margin)


UNFITTED = Survival(0.0, 1.0)


class Candidates(NamedTuple):
    """The first Y hypotheses of every position, best first; zeros where nothing is masked."""

    tokens: Tensor  # int64 [B, L, Y]
    probabilities: Tensor  # fp32 [B, L, Y], stale: untempered at temperature 0, else tempered
    margin: Tensor  # fp32 [B, L], by how much the first beats the second before the choice


def candidates(batch: RequestBatch, *, rule: Rule, coupled: bool, count: int) -> Candidates:
    """Rank the stale candidates of every masked position.

    Args:
        batch: the requests.
        rule: temperature, top-k and top-p.
        coupled: whether to share the target's noise.
        count: Y.
    """
    sequence, position = batch.masked.nonzero(as_tuple=True)
    logs, ids = batch.log_probs[sequence, position], batch.tokens[sequence, position]
    if rule.temperature == 0.0:
        score, probability = logs.double(), logs.exp()
    else:
        score = logs.double() / rule.temperature
        probability = law(logs, rule).float()
        if coupled:
            score = score + gumbel(batch.keys[sequence], batch.starts[sequence] + position, ids)
        score = score.masked_fill(~kept(logs, rule), -torch.inf)
    top = score.topk(max(count, 2), dim=-1)
    margin = (top.values[:, 0] - top.values[:, 1]).clamp(max=MAX_MARGIN).float()
    best = top.indices[:, :count]
    found = Candidates(
        torch.zeros((*batch.masked.shape, count), dtype=torch.int64),
        torch.zeros((*batch.masked.shape, count)),
        torch.zeros(batch.masked.shape),
    )
    found.tokens[sequence, position] = ids.gather(1, best)
    found.probabilities[sequence, position] = probability.gather(1, best)
    found.margin[sequence, position] = margin
    return found
