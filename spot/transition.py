"""The target's rule Phi: which masked position commits next, and with which token.

Selection is noise free and looks at untempered confidences: *strict* takes the most confident
position, *threshold* every position above tau, or the most confident one if there is none. A
penalty may make positions with certain best tokens, such as stop ids, count as less sure. How the
rules of released loops select is told in ``spot.released``. The token at a selected position is the
best one at temperature 0 and a Gumbel-max draw otherwise. Phi is a pure function of (state,
conditionals, sample key), and of the state's step in its block where ``Rule.counts_steps``: it
looks at neither stop ids nor budgets.

Legend: R rows (state, position), S states, L positions of a block, V vocabulary.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from spot.noise import gumbel_rows

RuleName = Literal[
    "strict",
    "threshold",
    "low_confidence_static",
    "low_confidence_dynamic",
    "llada2_threshold",
    "sequential",
    "entropy_bounded",
]

_CONSTANTS: dict[RuleName, tuple[str, ...]] = {
    "strict": (),
    "threshold": ("tau",),
    "low_confidence_static": ("denoising_steps",),
    "low_confidence_dynamic": ("tau", "denoising_steps"),
    "llada2_threshold": ("tau", "denoising_steps"),
    "sequential": ("denoising_steps",),
    "entropy_bounded": ("entropy_bound",),
}
_BY_DRAWN_TOKEN = ("low_confidence_static", "low_confidence_dynamic", "llada2_threshold")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The transition rule with its constants; recorded with every output.

    Raises:
        ValueError: a constant is missing where the rule needs it, or present where it has no
            meaning.
    """

    name: RuleName = "strict"
    tau: float | None = None
    denoising_steps: int | None = None  # transitions that fill a block; None for one a position
    entropy_bound: float | None = None  # nats
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    confidence_penalty: float = 0.0  # nats, of positions whose best token is one of these
    penalized_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        takes = _CONSTANTS[self.name]
        for constant in ("tau", "denoising_steps", "entropy_bound"):
            if constant not in takes and getattr(self, constant) is not None:
                raise ValueError(f"the {self.name} rule has no {constant}")
        if "tau" in takes and not (self.tau is not None and 0.0 < self.tau < 1.0):
            raise ValueError(f"the {self.name} rule needs a tau between 0 and 1")
        if "entropy_bound" in takes and not (self.entropy_bound or 0.0) > 0.0:
            raise ValueError(f"the {self.name} rule needs an entropy_bound above 0")
        if self.denoising_steps is not None and self.denoising_steps < 1:
            raise ValueError("denoising_steps is below 1")
        if self.confidence_penalty > 0.0 and self.is_released:
            raise ValueError(f"the {self.name} rule has no confidence_penalty")
        if self.looks_at_noise and self.top_k == 1:
            raise ValueError(
                f"with top_k 1 every confidence of the {self.name} rule is 1; use temperature 0"
            )

    @property
    def log_tau(self) -> float:
        """log(tau), computed in fp64 and rounded to fp32 once; +inf where the rule has no tau."""
        return math.inf if self.tau is None else float(np.float32(math.log(self.tau)))

    @property
    def is_released(self) -> bool:
        """Whether it is a released loop's rule (``spot.released``)."""
        return self.name not in ("strict", "threshold")

    @property
    def looks_at_noise(self) -> bool:
        """Whether positions are selected by their drawn tokens; noise then carries the step."""
        return self.name in _BY_DRAWN_TOKEN and self.temperature > 0.0

    @property
    def counts_steps(self) -> bool:
        """Whether Phi depends on how many transitions the block has made."""
        return self.looks_at_noise or self.denoising_steps is not None


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


def weighed(conf: Tensor, token: Tensor, rule: Rule) -> Tensor:
    """What positions are selected by: the confidence, less the penalty on their best token.

    Any shape; ``conf`` fp32 and ``token`` int64.
    """
    if rule.confidence_penalty == 0.0:
        return conf
    penalized = torch.isin(token, torch.tensor(rule.penalized_ids, device=token.device))
    return torch.where(penalized, conf - rule.confidence_penalty, conf)


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
        ranks = (ranked.double() / rule.temperature).masked_fill(~keep, -torch.inf)
        mass = torch.softmax(ranks, dim=-1)
        keep &= mass.cumsum(-1) - mass < rule.top_p
    return torch.zeros_like(keep).scatter_(1, order, keep)


def tempered(logits: Tensor, rule: Rule) -> Tensor:
    """Logits over the temperature, which is above 0; -inf where no token is kept; fp64 [R, V]."""
    scaled = logits.double() / rule.temperature
    if rule.top_k or rule.top_p < 1.0:
        scaled = scaled.masked_fill(~kept(logits, rule), -torch.inf)
    return scaled


def draw(
    logits: Tensor, *, keys: Tensor, positions: Tensor, rule: Rule, steps: Tensor | None = None
) -> Tensor:
    """The token at each row's position.

    Args:
        logits: fp32 [R, V], banned ids at -inf.
        keys: sample keys, int64 [R].
        positions: absolute positions, int64 [R].
        rule: temperature, top-k and top-p.
        steps: transitions made in the block before each row's state, int64 [R]; they count under
            rules that look at the noise only.

    Returns:
        int64 [R]; ties to the lowest id.
    """
    if rule.temperature == 0.0:
        return logits.max(dim=-1).indices
    counted = steps if rule.looks_at_noise else None
    noise = gumbel_rows(keys, positions, vocab_size=logits.shape[1], steps=counted)
    return (tempered(logits, rule) + noise).max(dim=-1).indices


def law(logits: Tensor, rule: Rule) -> Tensor:
    """The law that ``draw`` samples from, fp64 [R, V]; one-hot at temperature 0."""
    if rule.temperature == 0.0:
        return torch.zeros_like(logits, dtype=torch.float64).scatter_(
            1, logits.max(dim=-1).indices[:, None], 1.0
        )
    return tempered(logits, rule).softmax(-1)
