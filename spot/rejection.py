"""Accept-residual rejection sampling along a chain: exact in law, not identical to draft-free.

At a verified state the target's law pi over (position, token) pairs is a point mass on the selected
position times the tempered law of its token. A link drawn from q is accepted with probability
min(1, pi / q); otherwise the commit is drawn from the normalised positive part of pi - q, and the
round ends. The acceptance probability is 1 - TV(pi, q) (paper, proposition 3).

Every draw has its own noise stream and carries the step: proposals, acceptance tests and residual
draws must be independent of each other.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spot.drafters.base import Proposal
from spot.noise import ACCEPTANCE, RESIDUAL, gumbel, uniform
from spot.targets.base import Conditionals
from spot.trajectory import Commit
from spot.transition import Rule, law
from spot.verification import Step, Stepper, Transitions, signed


def acceptance(target_law: NDArray[np.float64], position: int, proposal: Proposal) -> float:
    """Probability that this proposal is accepted: min(1, pi / q).

    Args:
        target_law: fp64 [V], of the token at the selected position.
        position: the selected position, in the block.
        proposal: how the link was drawn.
    """
    if proposal.position != position:
        return 0.0
    drawn = proposal.tokens[position] == proposal.token
    return min(1.0, float(target_law[proposal.token] / proposal.law[position][drawn].sum()))


def residual(
    target_law: NDArray[np.float64], position: int, proposal: Proposal
) -> NDArray[np.float64]:
    """The normalised positive part of pi - q at the selected position, fp64 [V]."""
    rest = target_law.copy()
    np.subtract.at(rest, proposal.tokens[position], proposal.law[position])
    rest = np.maximum(rest, 0.0)
    return np.asarray(rest / rest.sum())


def rejection(
    conditionals: Conditionals,
    phi: Transitions,
    *,
    first: int,
    states: Sequence[int],
    proposals: Sequence[Proposal],
    start: int,
    step: int,
    key: int,
    rule: Rule,
) -> Stepper:
    """Steps along a chain: state ``i`` of the walk has proposal ``i`` as its successor.

    Args:
        conditionals: of all evaluated states.
        phi: transitions; those of the walk's states begin at index ``first``.
        first: see ``phi``.
        states: indices of the walk's states in ``conditionals``.
        proposals: the chain's links; states behind the last one make a plain draw.
        start: absolute position of the block.
        step: transitions made in the block before the root.
        key: the sample key, unsigned.
        rule: the strict rule with its temperature.

    Raises:
        ValueError: the rule commits several positions at once.
    """
    if rule.name != "strict":
        raise ValueError("rejection sampling is defined for the strict rule only")
    keys = torch.tensor([signed(key)])

    def at(index: int) -> Step:
        (drawn,) = phi.move(first + index)
        if index >= len(proposals):
            return Step((drawn,))
        proposal, place = proposals[index], drawn.position - start
        logits = conditionals.logits[conditionals.row_of[states[index], place].view(1)]
        target_law = law(logits, rule)[0].numpy()
        proposed = torch.tensor([start + proposal.position])
        token = torch.tensor([[proposal.token]])
        u = uniform(keys, proposed, token, step=step + index, stream=ACCEPTANCE)
        if float(u) < acceptance(target_law, place, proposal):
            return Step((_commit(drawn, proposal.token, logits),))
        rest = torch.from_numpy(residual(target_law, place, proposal)).log()
        noise = _row_noise(keys, drawn.position, len(rest), step=step + index)
        return Step((_commit(drawn, int((rest + noise).argmax()), logits),))

    return at


def _row_noise(keys: Tensor, position: int, vocab_size: int, *, step: int) -> Tensor:
    tokens = torch.arange(vocab_size)[None]
    return gumbel(keys, torch.tensor([position]), tokens, step=step, stream=RESIDUAL)[0]


def _commit(drawn: Commit, token: int, logits: Tensor) -> Commit:
    """The drawn commit with another token."""
    log_probability = drawn.confidence + float(logits[0, token] - logits[0].max())
    return drawn._replace(token=token, log_probability=log_probability)
