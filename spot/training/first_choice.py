"""What a drafter would propose first behind a state: the yardstick for a round's first rejection.

Nothing is searched: the likeliest positions by the model (or by stale confidence, for methods
without one), with their first token hypotheses.
"""

from collections.abc import Callable

import numpy as np
import torch

from spot.drafters.base import DraftRequest
from spot.drafters.batch import RequestBatch, stack
from spot.drafters.features import stale_features, with_path
from spot.drafters.hypotheses import candidates
from spot.drafters.order_model import OrderModel
from spot.drafters.set_model import SetModel, doubt_of
from spot.drafters.sets import SetCalibration
from spot.drafters.tree import Flags
from spot.targets.base import State
from spot.training.membership import likeliest, or_leader
from spot.transition import Rule

Positions = Callable[[RequestBatch, Flags, int], Flags]
"""The positions [L] that commit first, given one request, what its path has taken, and how deep."""

FirstChoice = Callable[[DraftRequest, State, int], State]
"""The likeliest successor of a state so many transitions behind the request's root."""


def by_order_model(model: OrderModel) -> Positions:
    """The order model's first position."""

    def positions(batch: RequestBatch, taken: Flags, depth: int) -> Flags:
        features, flags = _features(batch, taken, depth)
        scores = model(features, masked=batch.masked, taken=flags)[0].numpy()
        first: Flags = np.arange(len(taken)) == scores.argmax()
        return first

    return positions


def by_set_model(model: SetModel, *, tau: float, calibration: SetCalibration) -> Positions:
    """The set model's likeliest set."""

    def positions(batch: RequestBatch, taken: Flags, depth: int) -> Flags:
        features, flags = _features(batch, taken, depth)
        law = model(
            features,
            doubts=batch.doubts,
            masked=batch.masked,
            taken=flags,
            threshold=torch.tensor([[doubt_of(tau)]]),
        )
        chosen: Flags = likeliest(law, calibration)[0]
        return chosen

    return positions


def by_stale_confidence(rule: Rule) -> Positions:
    """What the rule would commit if the stale confidences were fresh."""
    threshold = -np.inf if rule.tau is None else doubt_of(rule.tau)

    def positions(batch: RequestBatch, taken: Flags, depth: int) -> Flags:
        open_ = batch.masked[0].numpy() & ~taken
        doubts = np.where(open_, batch.doubts[0].numpy(), np.inf)[None]
        chosen: Flags = or_leader(doubts < threshold, doubts)[0]
        return chosen

    return positions


def first_choice(
    positions: Positions, *, rule: Rule, mask_id: int, coupled: bool = True
) -> FirstChoice:
    """Positions with their first token hypotheses."""

    @torch.inference_mode()
    def choose(request: DraftRequest, state: State, depth: int) -> State:
        batch = stack([request], mask_id=mask_id)
        taken = state != request.root
        tokens = candidates(batch, rule=rule, coupled=coupled, count=1).tokens[0, :, 0].numpy()
        return np.where(positions(batch, taken, depth), tokens, state)

    return choose


def _features(batch: RequestBatch, taken: Flags, depth: int) -> tuple[torch.Tensor, torch.Tensor]:
    flags = torch.from_numpy(taken)[None]
    shared = stale_features(batch.log_probs, batch.doubts, batch.masked, batch.seen)
    depths = torch.tensor([depth])
    return with_path(shared, masked=batch.masked, taken=flags, depth=depths), flags
