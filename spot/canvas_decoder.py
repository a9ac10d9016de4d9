"""The reference decoder of targets whose attention looks both ways: LLaDA-8B and Dream-7B.

The canvas is the prompt and as many masks as may be output, in whole blocks from the prompt's end:
its length is an input of the model. When a block opens, one forward over the whole canvas gives the
opening's conditionals and freezes keys and values outside the block (Fast-dLLM, Wu et al., 2026);
later states of the block are evaluated against them, draft-free and drafted alike. What is kept so
is an approximation of the model; drafts are exact relative to it.
"""

import numpy as np

from spot.drafters.base import Drafter
from spot.rounds import Look, Rounds, Sample, finished
from spot.targets.base import (
    CacheContext,
    Canvas,
    CanvasTarget,
    CanvasUnit,
    Conditionals,
    Opened,
    State,
    conditionals_of,
)
from spot.trajectory import Cost, Decoded, Trajectory
from spot.transition import Rule
from spot.verification import VerifierName


def open_canvas(prompt: State, *, max_tokens: int, length: int, mask_id: int) -> State:
    """The prompt, and masks for the output budget rounded up to whole blocks; int64 [N]."""
    num_masks = -(-max_tokens // length) * length
    return np.concatenate([prompt, np.full(num_masks, mask_id, np.int64)])


class CanvasDecoder:
    """Decodes one sample at a time."""

    def __init__(
        self,
        target: CanvasTarget,
        *,
        rule: Rule,
        context: CacheContext,
        drafter: Drafter | None = None,
        budget: int = 0,
        verifier: VerifierName = "coupled",
    ) -> None:
        """Raises ValueError if target, rule and verifier do not go together."""
        self._target, self._context = target, context
        self._rounds = Rounds(
            target.spec, rule=rule, drafter=drafter, budget=budget, verifier=verifier
        )

    def decode(self, sample: Sample) -> Decoded:
        """Decode to the end."""
        length, prompt = self._target.spec.block_length, np.asarray(sample.prompt_ids, np.int64)
        trajectory = Trajectory(prompt_tokens=len(prompt))
        canvas = open_canvas(
            prompt,
            max_tokens=sample.limits.max_tokens,
            length=length,
            mask_id=self._target.spec.mask_id,
        )
        start = len(prompt)
        while True:
            block = slice(start, start + length)
            look = self._look(canvas.copy(), start, trajectory.cost)
            state, end = self._rounds.decode_block(
                sample, trajectory, canvas[block].copy(), start, look
            )
            if end is not None:
                return finished(trajectory, end)
            canvas[block] = state
            start += length

    def _look(self, canvas: State, start: int, cost: Cost) -> Look:
        """Evaluation in a block of a canvas: the first call opens it, later ones are cheap."""
        target, opened = self._target, None

        def look(states: list[State]) -> Conditionals:
            nonlocal opened
            if opened is None:
                (opened,) = target.open([Canvas(canvas, start)], context=self._context)
                cost.positions += len(canvas)
                return conditionals_of(target, opened.hidden[None], np.stack(states))
            cost.positions += len(states) * len(states[0])
            return evaluate_canvas(target, states, opened)

        return look


def evaluate_canvas(target: CanvasTarget, states: list[State], opened: Opened) -> Conditionals:
    """Conditionals of states of an open block."""
    units = [CanvasUnit(state=state, opened=opened) for state in states]
    return conditionals_of(target, target.hidden(units), np.stack(states))
