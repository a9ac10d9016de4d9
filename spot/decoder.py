"""The reference decoder: one sequence, no batching, no page sharing. The oracle of every test.

Without a drafter it is draft-free decoding, which defines the output; with one it is the paper's
section 4. Read it top to bottom: open a block, evaluate root and drafts in one forward, walk.
Full drafts are dropped here: looking through to the next block is the engine's business.
"""

from dataclasses import dataclass

import numpy as np
import torch

from spot.attention import KVPages
from spot.conditionals import stale_of
from spot.drafters.base import Drafter, DraftRequest, Drafts, Stale, no_drafts
from spot.limits import Ending, Limits, ending
from spot.rejection import rejection
from spot.released import check_schedule
from spot.targets.base import Conditionals, State, Target, Unit, evaluate
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


class ReferenceDecoder:
    """Decodes one sample at a time."""

    def __init__(
        self,
        target: Target,
        *,
        rule: Rule,
        drafter: Drafter | None = None,
        budget: int = 0,
        verifier: VerifierName = "coupled",
    ) -> None:
        """Raises ValueError if target, rule and verifier do not go together."""
        check_schedule(rule, length=target.spec.block_length)
        check_verifier(verifier, rule=rule)
        self._target, self._rule, self._verifier = target, rule, verifier
        self._drafter, self._budget = drafter, budget

    def decode(self, sample: Sample) -> Decoded:
        """Decode to the end.

        Complexity: one forward per round, a round commits at least one token.
        """
        length, mask_id = self._target.spec.block_length, self._target.spec.mask_id
        prompt = np.asarray(sample.prompt_ids, np.int64)
        trajectory = Trajectory(prompt_tokens=len(prompt))
        full = len(prompt) // length
        pages = self._target.new_pages(-(-sample.limits.end // length))
        pending = [self._store(prompt[b * length :][:length], b) for b in range(full)]
        trajectory.cost.nfe_prefill = int(full > 0)
        block = full
        while True:
            start = block * length
            root = open_block(prompt, start, length=length, mask_id=mask_id)
            state, end = self._decode_block(sample, trajectory, pages, root, block, pending)
            if end is not None:
                return Decoded(trajectory.output(end), end.reason, trajectory)
            pending, block = [self._store(state, block)], block + 1

    def _store(self, state: State, block: int) -> Unit:
        """A finished block whose keys and values enter page number ``block``."""
        start = block * self._target.spec.block_length
        return Unit(state=state, start=start, pages=tuple(range(block)), write=block)

    def _decode_block(
        self,
        sample: Sample,
        trajectory: Trajectory,
        pages: KVPages,
        root: State,
        block: int,
        pending: list[Unit],
    ) -> tuple[State, Ending | None]:
        """Rounds until the block is full or the sample is done; returns its last state."""
        start, mask_id = block * len(root), self._target.spec.mask_id
        stale: Stale | None = None
        step, before = 0, len(trajectory.moves)
        end = ending(root, start=start, mask_id=mask_id, limits=sample.limits)
        while end is None and (root == mask_id).any():
            drafts = self._drafts(sample, root, stale, start, step)
            states = [root, *drafts.states]
            units = [Unit(state=s, start=start, pages=tuple(range(block))) for s in states]
            found = evaluate(self._target, units + pending, pages, num_states=len(units))
            cost = trajectory.cost
            cost.nfe, cost.rounds = cost.nfe + 1, cost.rounds + 1
            cost.drafted += len(states) - 1
            cost.positions += (len(units) + len(pending)) * len(root)
            pending = []
            stepper = self._stepper(found, sample, drafts, start, step)
            made = walk(
                states,
                stepper,
                start=start,
                mask_id=mask_id,
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
        usable = (drafts.states == self._target.spec.mask_id).any(-1)
        return drafts.pick(usable)

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
