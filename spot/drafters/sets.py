"""SPOT-Sets: whole commit sets with their tokens, for the threshold rule.

The next set is modelled by independent memberships with the fallback counted: a single position s
is the next set if it alone passes, or if none passes and it leads,
``mass({s}) = P({s}) + P(empty) * q(s)``. Children of a node are its likeliest sets; the recursion
stays on the same stale conditionals. ``sets_stale``, the baseline without a model, takes the
positions whose stale confidence passes tau.

Legend: B sequences, N nodes of a level, L block length, F flips, C candidate sets of a node.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from spot.drafters.base import DraftRequest, Drafts
from spot.drafters.batch import RequestBatch, stack
from spot.drafters.chain import by_confidence, fill
from spot.drafters.checkpoint import DrafterConfig
from spot.drafters.features import stale_features, with_path
from spot.drafters.hypotheses import UNFITTED, Survival, candidates
from spot.drafters.set_model import SetModel, doubt_of, load_set_model
from spot.drafters.tree import Expander, Flags, Floats, Ints, Nodes, codes, grow
from spot.transition import Rule

MAX_FLIPS = 9  # memberships that are varied, the least certain first: 512 sets of a node

SURE = 40.0  # the largest membership logit


class SetLaws(NamedTuple):
    """Memberships and fallback order of a level's nodes."""

    membership: Floats  # [N, L], logits; -inf where nothing can commit
    order: Floats  # [N, L], probabilities


class Sets(NamedTuple):
    """Candidate sets of nodes."""

    member: Flags  # [N, C, L]
    mass: Floats  # [N, C]


SetScorer = Callable[[Nodes], SetLaws]


def likeliest_sets(laws: SetLaws, *, flips: int = MAX_FLIPS) -> Sets:
    """Candidate sets of each node with their masses, in no order.

    All combinations of the ``flips`` least certain memberships around the likeliest set, and every
    single position; the empty set's mass goes to the single positions by the fallback order.
    """
    logits = np.minimum(laws.membership, SURE)
    base = logits > 0
    cost = np.abs(logits)  # log-odds lost by changing one's mind; infinite where closed
    doubtful = np.argsort(cost, axis=1, kind="stable")[:, : min(flips, logits.shape[1])]
    patterns = _patterns(doubtful.shape[1])
    member = np.repeat(base[:, None], len(patterns), axis=1)
    np.put_along_axis(
        member,
        doubtful[:, None].repeat(len(patterns), axis=1),
        np.take_along_axis(base, doubtful, 1)[:, None] ^ patterns,
        axis=2,
    )
    with np.errstate(invalid="ignore"):
        lost = np.where(patterns, np.take_along_axis(cost, doubtful, 1)[:, None], 0.0).sum(-1)
    mass = np.exp(-np.log1p(np.exp(-cost)).sum(1)[:, None] - lost)
    mass[member.sum(-1) <= 1] = 0.0  # counted below
    empty = np.exp(-np.logaddexp(0.0, logits).sum(1))
    single_mass = empty[:, None] * (np.exp(logits) + laws.order)
    singles = np.broadcast_to(
        np.eye(logits.shape[1], dtype=bool), (len(base), *[logits.shape[1]] * 2)
    )
    return Sets(
        np.concatenate([member, singles], axis=1),
        np.concatenate([mass, single_mass], axis=1).astype(np.float32),
    )


def _patterns(num: int) -> Flags:
    """All subsets of ``num`` things, bool [2**num, num]."""
    return (np.arange(2**num)[:, None] >> np.arange(num) & 1).astype(bool)


def expand_sets(scorer: SetScorer, *, tokens: Ints, factors: Floats) -> Expander:
    """Children by one set each: mass of the parent, times set, times the token factors.

    Args:
        scorer: the laws of a level's nodes.
        tokens: token hypothesis of every position, [B, L].
        factors: probability that it is right, [B, L].
    """
    words = codes((tokens.shape[1], 1))[:, 0]

    def expand(level: Nodes, floors: Floats) -> Nodes:
        sets = likeliest_sets(scorer(level))
        logs = np.log(np.maximum(factors[level.owner], 1e-30))
        mass = level.mass[:, None] * sets.mass * np.exp(np.einsum("ncl,nl->nc", sets.member, logs))
        parent, which = np.nonzero(mass > floors[level.owner][:, None])
        chosen = sets.member[parent, which]
        child = level.pick(parent)
        child.taken = child.taken | chosen
        child.states = np.where(chosen, tokens[child.owner], child.states)
        child.mass = mass[parent, which].astype(np.float32)
        child.depth = child.depth + 1
        child.code = child.code + (chosen * words).sum(1, dtype=np.uint64)
        return child

    return expand


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCalibration:
    """How membership logits are read: divided by the temperature, then shifted by the bias."""

    temperature: float = 1.0
    bias: float = 0.0


class SetsDrafter:
    """The learned set drafter."""

    def __init__(
        self,
        model: SetModel,
        *,
        rule: Rule,
        mask_id: int,
        survival: Survival = UNFITTED,
        calibration: SetCalibration | None = None,
        gamma: float = 0.0,
        coupled: bool = True,
    ) -> None:
        """Raises ValueError if the rule is not the threshold rule."""
        self._threshold = _threshold(rule)
        self._model, self._rule, self._mask_id = model, rule, mask_id
        self._survival, self._calibration = survival, calibration or SetCalibration()
        self._gamma, self._coupled = gamma, coupled

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        rule: Rule,
        mask_id: int,
        gamma: float = 0.0,
        coupled: bool = True,
    ) -> "SetsDrafter":
        """From a drafter directory."""
        model, config = load_set_model(path)
        return cls(
            model,
            rule=rule,
            mask_id=mask_id,
            survival=Survival.of(config, rule),
            calibration=_calibration(config),
            gamma=gamma,
            coupled=coupled,
        )

    @torch.inference_mode()
    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """One tree per request; see ``Drafter.propose``."""
        batch = stack(requests, mask_id=self._mask_id)
        found = candidates(batch, rule=self._rule, coupled=self._coupled, count=1)
        expand = expand_sets(
            self._scorer(batch),
            tokens=found.tokens[..., 0].numpy(),
            factors=self._survival(found.margin).numpy(),
        )
        bounds = batch.bounds(gamma=self._gamma)
        return grow(expand, roots=batch.roots, masked=batch.masked.numpy(), bounds=bounds)

    def _scorer(self, batch: RequestBatch) -> SetScorer:
        shared = stale_features(batch.log_probs, batch.doubts, batch.masked, batch.seen)
        calibration = self._calibration

        def score(level: Nodes) -> SetLaws:
            index, taken = torch.from_numpy(level.owner), torch.from_numpy(level.taken)
            masked, depths = batch.masked[index], torch.from_numpy(level.depth)
            law = self._model(
                with_path(shared[index], masked=masked, taken=taken, depth=depths),
                doubts=batch.doubts[index],
                masked=masked,
                taken=taken,
                threshold=torch.full((len(index), 1), self._threshold),
            )
            membership = law.membership.numpy() / calibration.temperature + calibration.bias
            return SetLaws(membership.astype(np.float32), law.order.exp().numpy())

        return score


class StaleSetsDrafter:
    """Stale confidence above tau, then the surest position left; a chain without a model."""

    def __init__(self, *, rule: Rule, mask_id: int, coupled: bool = True) -> None:
        """Raises ValueError if the rule is not the threshold rule."""
        self._threshold = _threshold(rule)
        self._rule, self._mask_id, self._coupled = rule, mask_id, coupled

    @torch.inference_mode()
    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """One chain per request; see ``Drafter.propose``."""
        batch = stack(requests, mask_id=self._mask_id)
        found = candidates(batch, rule=self._rule, coupled=self._coupled, count=1)
        tokens, doubts = found.tokens[..., 0].numpy(), batch.doubts.numpy()
        orders = by_confidence(batch)
        return [
            self._chain(r, order, tokens[b], int((doubts[b, order] < self._threshold).sum()))
            for b, (r, order) in enumerate(zip(requests, orders, strict=True))
        ]

    def _chain(self, request: DraftRequest, order: Ints, tokens: Ints, num_sure: int) -> Drafts:
        """The ``num_sure`` surest positions at once, or the surest one, then one by one."""
        states = fill(request.root, order, tokens[order])[max(num_sure, 1) - 1 :]
        if not request.full_states:
            states = states[(states == self._mask_id).any(-1)]
        states = states[: request.budget]
        num = len(states)
        return Drafts(states, np.ones(num, np.float32), np.arange(1, num + 1))


def _threshold(rule: Rule) -> float:
    if rule.name != "threshold" or rule.tau is None:
        raise ValueError("sets are drafted for the threshold rule only")
    return doubt_of(rule.tau)


def _calibration(config: DrafterConfig) -> SetCalibration:
    return SetCalibration(temperature=config.temperature, bias=config.bias)
