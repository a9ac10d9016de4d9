"""The target's rule Phi: which masked position commits next, and with which token.

Selection is noise free and looks at untempered confidences: *strict* takes the most confident
position, *threshold* every position above tau, or the most confident one if there is none. The
token at a selected position is the best one at temperature 0 and a Gumbel-max draw otherwise.
Phi is a pure function of (state, conditionals, sample key): it looks at neither stop ids nor
budgets.

Legend: R rows (state, position), S states, L positions of a block, V vocabulary.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from spot.noise import gumbel_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The transition rule with its constants; recorded with every output.

    Raises:
        ValueError: tau is missing where the rule needs it, or present where it has no meaning.
    """

    name: Literal["strict", "threshold"] = "strict"
    tau: float | None = None
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if self.name == "strict" and self.tau is not None:
            raise ValueError("the strict rule has no tau")
        if self.name == "threshold" and not (self.tau is not None and 0.0 < self.tau < 1.0):
            raise ValueError("the threshold rule needs a tau between 0 and 1")

    @property
    def log_tau(self) -> float:
        """log(tau), computed in fp64 and rounded to fp32 once; +inf under the strict rule."""
        return math.inf if self.tau is None else float(np.float32(math.log(self.tau)))


def ban(logits: Tensor, banned: Tensor) -> Tensor:
    """Set banned ids (bool [V]) to -inf, before any softmax; returns [R, V], fp32 or wider."""
    wide = torch.promote_types(logits.dtype, torch.float32)
    nothing = torch.zeros(len(banned), dtype=wide, device=logits.device)
    return logits.to(wide) + nothing.masked_fill(banned, -torch.inf)


def confidence(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Log of the untempered top probability, and its token.

    Computed as ``-log1p(sum over the others of exp(l - l_best))``: as a softmax or as
    ``max - logsumexp`` in fp32 a sure target ties at exactly 1 and the tie break would decide.

    Args:
        logits: fp32 [R, V], banned ids at -inf.

    Returns:
        Confidence fp32 [R] and token int64 [R] (ties to the lowest id).
    """
    best, token = logits.max(dim=-1)
    others = (logits - best[:, None]).exp_()
    others.scatter_(1, token[:, None], 0.0)
    return -torch.log1p(others.sum(-1)), token


def leader(conf: Tensor) -> Tensor:
    """The most confident position, ties to the lowest.

    Args:
        conf: fp32 [S, L], -inf where no token can be committed.

    Returns:
        int64 [S].
    """
    positions = torch.arange(conf.shape[1], device=conf.device)
    best = conf == conf.max(dim=-1, keepdim=True).values
    return torch.where(best, positions, conf.shape[1]).amin(-1)


def select(conf: Tensor, rule: Rule) -> Tensor:
    """The positions that commit together.

    Args:
        conf: fp32 [S, L], -inf where no token can be committed.
        rule: strict takes the leader; threshold all above log(tau), or the leader if none is.

    Returns:
        bool [S, L], at least one per state.
    """
    above = conf > rule.log_tau
    alone = ~above.any(-1)
    above[alone, leader(conf)[alone]] = True
    return above


def tied(conf: Tensor, rule: Rule) -> Tensor:
    """Whether a tie break settled the choice: a leader decides and is not alone; bool [S]."""
    best = conf == conf.max(dim=-1, keepdim=True).values
    return (best.sum(-1) > 1) & ~(conf > rule.log_tau).any(-1)


def kept(logits: Tensor, rule: Rule) -> Tensor:
    """Which tokens may be drawn: top-k, then top-p, of the tempered law; bool [R, V].

    Tokens are ranked by (logit descending, id ascending); top-p keeps the shortest prefix whose
    mass reaches p, the crossing token included.
    """
    ranked, order = torch.sort(logits, dim=-1, descending=True, stable=True)
    keep = torch.isfinite(ranked)
    if rule.top_k:
        keep[:, rule.top_k :] = False
    if rule.top_p < 1.0:
        tempered = (ranked.double() / rule.temperature).masked_fill(~keep, -torch.inf)
        mass = torch.softmax(tempered, dim=-1)
        keep &= mass.cumsum(-1) - mass < rule.top_p
    return torch.zeros_like(keep).scatter_(1, order, keep)


def draw(logits: Tensor, *, keys: Tensor, positions: Tensor, rule: Rule) -> Tensor:
    """The token at each row's position.

    Args:
        logits: fp32 [R, V], banned ids at -inf.
        keys: sample keys, int64 [R].
        positions: absolute positions, int64 [R].
        rule: temperature, top-k and top-p.

    Returns:
        int64 [R]; ties to the lowest id.
    """
    if rule.temperature == 0.0:
        return logits.max(dim=-1).indices
    noise = gumbel_rows(keys, positions, vocab_size=logits.shape[1])
    perturbed = logits.double() / rule.temperature + noise
    if rule.top_k or rule.top_p < 1.0:
        perturbed = perturbed.masked_fill(~kept(logits, rule), -torch.inf)
    return perturbed.max(dim=-1).indices


def law(logits: Tensor, rule: Rule) -> Tensor:
    """The law that ``draw`` samples from, fp64 [R, V]; one-hot at temperature 0."""
    if rule.temperature == 0.0:
        return torch.zeros_like(logits, dtype=torch.float64).scatter_(
            1, logits.max(dim=-1).indices[:, None], 1.0
        )
    tempered = logits.double() / rule.temperature
    return tempered.masked_fill(~kept(logits, rule), -torch.inf).softmax(-1)
