"""What the set model says about states that were visited: membership logits and likeliest sets.

Legend: N examples, L block length.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from spot.drafters.set_model import SetLaw, SetModel, doubt_of
from spot.drafters.sets import SetCalibration, SetLaws, likeliest_sets
from spot.training.calibrate import Tally
from spot.training.train import Inputs, inputs
from spot.training.trajectories import Trajectories, states_at

BATCH = 512
DEPTHS = (0, 1, 2, 3)

Flags = NDArray[np.bool_]


class SetExamples(NamedTuple):
    """States at one depth behind their roots, and what the threshold rule commits there."""

    given: Inputs
    open: Flags  # [N, L], what could commit
    passes: Flags  # [N, L], whose fresh confidence exceeds tau
    commits: Flags  # [N, L], these, or the leader if there is none


def set_examples(
    trajectories: Trajectories, roots: NDArray[np.int64], *, depth: int, tau: float
) -> SetExamples:
    """Examples of the roots whose state at that depth was visited.

    Args:
        trajectories: visited states.
        roots: rows among ``trajectories.roots()``.
        depth: transitions between root and state.
        tau: of the threshold rule.
    """
    examples, rows = states_at(trajectories, roots, np.full(len(roots), depth))
    open_ = examples.masked & ~examples.taken
    fresh = np.where(open_, trajectories.doubts[rows].astype(np.float32), np.inf)
    passes = fresh < np.float32(doubt_of(tau))
    return SetExamples(inputs(trajectories, examples), open_, passes, or_leader(passes, fresh))


def or_leader(passes: Flags, doubts: NDArray[np.floating[Any]]) -> Flags:
    """The positions that pass, or the surest one where none does."""
    commits = passes.copy()
    alone = ~passes.any(1)
    commits[alone, doubts[alone].argmin(1)] = True
    return commits


@torch.inference_mode()
def set_law(model: SetModel, given: Inputs, *, tau: float) -> SetLaw:
    """The model's law at each example."""
    return model(  # type: ignore[no-any-return]
        given.features,
        doubts=given.doubts,
        masked=given.masked,
        taken=given.taken,
        threshold=torch.full((len(given.features), 1), doubt_of(tau)),
    )


def likeliest(law: SetLaw, calibration: SetCalibration) -> Flags:
    """The likeliest set of each example, bool [N, L], as the drafter would propose it first."""
    logits = law.membership.numpy() / calibration.temperature + calibration.bias
    laws = SetLaws(logits.astype(np.float32), law.order.exp().numpy())
    sets = likeliest_sets(laws, flips=0)  # flips only make a likeliest set less likely
    best = sets.mass.argmax(1)
    chosen: Flags = sets.member[np.arange(len(best)), best]
    return chosen


def stale_sets(given: Inputs, *, open_: Flags, tau: float) -> Flags:
    """The sets that stale confidence proposes, bool [N, L]."""
    stale = np.where(open_, given.doubts.numpy(), np.inf)
    return or_leader(stale < np.float32(doubt_of(tau)), stale)


def membership_tally(model: SetModel, trajectories: Trajectories, *, tau: float) -> Tally:
    """Whether positions pass tau, by the model's uncalibrated logit, at the shallow depths."""
    tally, roots = Tally(), trajectories.roots()
    for depth in DEPTHS:
        for first in range(0, len(roots), BATCH):
            found = set_examples(trajectories, roots[first : first + BATCH], depth=depth, tau=tau)
            if len(found.open):
                logits = set_law(model, found.given, tau=tau).membership.numpy()
                tally.add(logits[found.open], found.passes[found.open])
    return tally


def fit_calibration(tally: Tally) -> SetCalibration:
    """Temperature and bias under which the logits are likeliest.

    Raises:
        ValueError: nothing was observed, or the logits do not rise with what passes.
    """
    law = tally.fit()
    if law.slope <= 0.0:
        raise ValueError("membership logits do not rise with what passes tau")
    return SetCalibration(temperature=1.0 / law.slope, bias=law.offset)
