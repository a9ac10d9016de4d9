"""The rounds of one block: draft, evaluate root and drafts together, walk. Shared by decoders.

How states are evaluated is the decoder's business; full drafts are dropped here: looking through to
the next block is the engine's.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from spot.conditionals import stale_of
from spot.drafters.base import Drafter, DraftRequest, Drafts, Stale, no_drafts
from spot.limits import Ending, Limits, ending
from spot.rejection import rejection
from spot.released import check_schedule
from spot.targets.base import Conditionals, State
from spot.targets.checkpoint import TargetSpec
from spot.trajectory import Decoded, Trajectory
from spot.transition import Rule
from spot.verification import (
    Stepper,
    VerifierName,
    check_verifier,
    coupled,
    greedy,
    signed,
    transitions,
    walk,
)

# Conditionals of states of the block, the root first; counts the positions that it computes.
Look = Callable[[list[State]], Conditionals]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What to decode."""

    prompt_ids: tuple[int, ...]
    key: int
    limits: Limits


def open_block(prompt: State, start: int, *, length: int, mask_id: int) -> State:
    """A block's first state: masks, behind whatever part of the prompt reaches into it."""
    state = np.full(length, mask_id, np.int64)
    inside = prompt[start : start + length]
    state[: len(inside)] = inside
    return state


def steps_of(drafts: Drafts, step: int) -> list[int]:
    """Transitions made in the block before a root at the given step, and before each draft."""
    return [step, *(step + drafts.depths).tolist()]


class Rounds:
    """Decodes one block of one sample at a time."""

    def __init__(
        self,
        spec: TargetSpec,
        *,
        rule: Rule,
        drafter: Drafter | None = None,
        budget: int = 0,
        verifier: VerifierName = "coupled",
    ) -> None:
        """Raises ValueError if target, rule and verifier do not go together."""
        check_schedule(rule, length=spec.block_length)
        check_verifier(verifier, rule=rule)
        self._mask_id, self._rule, self._verifier = spec.mask_id, rule, verifier
        self._drafter, self._budget = drafter, budget

    def decode_block(
        self, sample: Sample, trajectory: Trajectory, root: State, start: int, look: Look
    ) -> tuple[State, Ending | None]:
        """Rounds until the block is full or the sample is done; returns its last state.

        Complexity: one call of ``look`` a round, a round commits at least one token.
        """
        stale: Stale | None = None
        step, before = 0, len(trajectory.moves)
        end = ending(root, start=start, mask_id=self._mask_id, limits=sample.limits)
        while end is None and (root == self._mask_id).any():
            drafts = self._drafts(sample, root, stale, start, step)
            states = [root, *drafts.states]
            found = look(states)
            cost = trajectory.cost
            cost.nfe, cost.rounds = cost.nfe + 1, cost.rounds + 1
            cost.drafted += len(states) - 1
            made = walk(
                states,
                self._stepper(found, sample, drafts, start, step),
                start=start,
                mask_id=self._mask_id,
                limits=sample.limits,
                steps=steps_of(drafts, step) if self._rule.counts_steps else None,
            )
            trajectory.moves += made.moves
            cost.accepted += made.accepted
            step = len(trajectory.moves) - before
            root, end, stale = made.root, made.end, stale_of(found, [made.last])[0]
        return root, end

    def _drafts(
        self, sample: Sample, root: State, stale: Stale | None, start: int, step: int
    ) -> Drafts:
        if self._drafter is None or stale is None or self._budget == 0:
            return no_drafts(len(root))
        request = DraftRequest(
            root=root, stale=stale, start=start, key=sample.key, budget=self._budget, step=step
        )
        drafts = self._drafter.propose([request])[0]
        return drafts.pick((drafts.states == self._mask_id).any(-1))

    def _stepper(
        self, found: Conditionals, sample: Sample, drafts: Drafts, start: int, step: int
    ) -> Stepper:
        """What the verifier does at each evaluated state."""
        num = len(drafts.states) + 1
        phi = transitions(
            found,
            states=torch.arange(num),
            starts=torch.full((num,), start),
            keys=torch.full((num,), signed(sample.key)),
            steps=torch.tensor(steps_of(drafts, step)),
            rule=self._rule,
        )
        if self._verifier == "greedy":
            return greedy(phi, 0)
        if self._verifier != "rejection":
            return coupled(phi, 0)
        return rejection(
            found,
            phi,
            first=0,
            states=range(num),
            proposals=drafts.proposals,
            start=start,
            step=step,
            key=sample.key,
            rule=self._rule,
        )


def finished(trajectory: Trajectory, end: Ending) -> Decoded:
    """A decoded sample."""
    return Decoded(trajectory.output(end), end.reason, trajectory)
