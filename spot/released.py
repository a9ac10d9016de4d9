"""Which positions commit next under the samplers of released loops.

* ``low_confidence_static``: as many of the surest positions as the schedule says.
* ``low_confidence_dynamic``, ``llada2_threshold``: every position above tau if they are as many as
  the schedule says, else as ``low_confidence_static``.
* ``sequential``: as many of the leftmost masked positions as the schedule says.
* ``entropy_bounded``: the positions of least entropy whose sum stays below the bound, one at least.

The schedule spreads the block over ``denoising_steps`` transitions, the first ones taking the
remainder, and never takes more than is masked: committed tokens stay. Confidence is the probability
of the token drawn at the position in the law that it was drawn from (after temperature, top-k and
top-p), so that selection looks at the noise and the noise carries the step; at temperature 0 it is
the untempered probability of the best token. Entropies are of the tempered law before top-k and
top-p, at temperature 0 of the untempered one. All ties go to the lowest position.

Legend: R rows, S states, E (sample, state) pairs, L positions of a block, V vocabulary.
"""

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from spot.targets.base import Conditionals
from spot.targets.logit_rows import LogitRows
from spot.transition import Rule, confidence, draw, tempered

ROWS_AT_ONCE = 64  # rows of the vocabulary that are drawn together, to bound memory


class Selection(NamedTuple):
    """The positions that commit together, of each pair."""

    chosen: Tensor  # bool [E, L], at least one
    tied: Tensor  # bool [E], whether a tie break settled the choice


def check_schedule(rule: Rule, *, length: int) -> None:
    """Raise ValueError if the rule's schedule has transitions that could commit nothing."""
    if rule.denoising_steps is not None and rule.denoising_steps > length:
        raise ValueError(
            f"{rule.denoising_steps} denoising steps of a block of {length} positions would leave "
            "some that commit nothing"
        )


def own_twin(rule: Rule) -> Rule:
    """The strict or threshold rule that makes the same transitions, if there is one, else itself.

    At temperature 0, one position a transition: released and own confidence are the same then.
    """
    if rule.temperature > 0.0 or rule.denoising_steps is not None:
        return rule
    if rule.name == "low_confidence_static":
        return replace(rule, name="strict")
    if rule.name in ("low_confidence_dynamic", "llada2_threshold"):
        return replace(rule, name="threshold")
    return rule


def released_selection(
    conditionals: Conditionals,
    *,
    states: Tensor,
    starts: Tensor,
    keys: Tensor,
    steps: Tensor,
    rule: Rule,
) -> Selection:
    """What a released loop commits next; arguments as of ``spot.verification.transitions``."""
    masked = (conditionals.row_of >= 0)[states]
    pair, position = masked.nonzero(as_tuple=True)
    rows = conditionals.row_of[states[pair], position]
    if rule.name == "sequential":
        values = -position.double()
    elif rule.looks_at_noise:
        values = _drawn(
            conditionals.logits,
            rows,
            keys=keys[pair],
            positions=starts[pair] + position,
            steps=steps[pair],
            rule=rule,
        )
    elif rule.name == "entropy_bounded":
        values = -_entropies(conditionals.logits, rows, rule)
    else:
        values = conditionals.confidence.double()[rows]
    scores = torch.full(masked.shape, -torch.inf, dtype=torch.float64, device=rows.device)
    scores[pair, position] = values
    return choose(scores, steps=steps, rule=rule)


def choose(scores: Tensor, *, steps: Tensor, rule: Rule) -> Selection:
    """Select by score.

    Args:
        scores: fp64 [E, L], larger first, -inf where nothing is masked: log-confidences, negative
            entropies or negative positions.
        steps: transitions made in the block before each state, int64 [E].
        rule: a released loop's rule.
    """
    ranked, order = scores.sort(dim=-1, descending=True, stable=True)
    num_masked = torch.isfinite(ranked).sum(-1)
    count = torch.minimum(_counts(ranked, steps, rule), num_masked)
    first = torch.arange(scores.shape[1], device=scores.device) < count[:, None]
    chosen = torch.zeros_like(first).scatter_(1, order, first)
    edge = ranked.gather(1, _around(count, scores.shape[1]))
    return Selection(chosen, (count < num_masked) & (edge[:, 0] == edge[:, 1]))


def _around(count: Tensor, length: int) -> Tensor:
    """The last rank that commits and the first that does not, int64 [E, 2]."""
    return torch.stack([count - 1, count], dim=1).clamp(0, length - 1)


def _counts(ranked: Tensor, steps: Tensor, rule: Rule) -> Tensor:
    """How many positions commit, of scores in descending order, int64 [E]."""
    if rule.entropy_bound is not None:
        return ((-ranked).cumsum(-1) < rule.entropy_bound).sum(-1).clamp(min=1)
    scheduled = quota(steps, length=ranked.shape[1], rule=rule)
    above = (ranked > rule.log_tau).sum(-1)
    return torch.maximum(above, scheduled)


def quota(steps: Tensor, *, length: int, rule: Rule) -> Tensor:
    """How many positions the schedule commits at each of the given steps of a block, int64."""
    num_steps = rule.denoising_steps or length
    return length // num_steps + (steps < length % num_steps).long()


def drawn_confidence(logits: Tensor, token: Tensor, rule: Rule) -> Tensor:
    """Log-probability of drawn tokens in the law that they were drawn from.

    Args:
        logits: fp32 [R, V], banned ids at -inf.
        token: int64 [R].
        rule: temperature, top-k and top-p.

    Returns:
        fp64 [R]; sure tokens keep their order, as in ``confidence``.
    """
    if rule.temperature == 0.0:
        return confidence(logits)[0].double()
    scaled = tempered(logits, rule)
    best, sure = confidence(scaled)
    drop = scaled.gather(1, token[:, None]) - scaled.gather(1, sure[:, None])
    return best + drop[:, 0]


def entropy(logits: Tensor, rule: Rule) -> Tensor:
    """Entropy of the law before top-k and top-p, in nats; fp64 [R].

    Rounded to fp32, so that the order of its sum does not decide a tie.
    """
    law = (logits.double() / (rule.temperature or 1.0)).softmax(-1)
    total: Tensor = torch.special.entr(law).sum(-1)
    return total.float().double()


def _entropies(logits: LogitRows, rows: Tensor, rule: Rule) -> Tensor:
    return torch.cat([entropy(logits[some], rule) for some in rows.split(ROWS_AT_ONCE)])


def _drawn(
    logits: LogitRows, rows: Tensor, *, keys: Tensor, positions: Tensor, steps: Tensor, rule: Rule
) -> Tensor:
    """Confidence of the tokens that every row would commit, fp64."""
    parts = []
    for part in torch.arange(len(rows), device=rows.device).split(ROWS_AT_ONCE):
        some = logits[rows[part]]
        token = draw(some, keys=keys[part], positions=positions[part], steps=steps[part], rule=rule)
        parts.append(drawn_confidence(some, token, rule))
    return torch.cat(parts)
