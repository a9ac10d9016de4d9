"""The reference decoder: one sequence, no batching, no page sharing. The oracle of every test.

Without a drafter it is draft-free decoding, which defines the output; with one it is the paper's
section 4. Read it top to bottom, then ``spot.rounds``: store the prompt's blocks, open a block,
decode it in rounds, store it with the opening of the next one. Targets whose attention looks both
ways have ``spot.canvas_decoder``.
"""

import numpy as np

from spot.attention import KVPages
from spot.drafters.base import Drafter
from spot.rounds import Look, Rounds, Sample, finished, open_block
from spot.targets.base import Conditionals, State, Target, Unit, evaluate
from spot.trajectory import Cost, Decoded, Trajectory
from spot.transition import Rule
from spot.verification import VerifierName

__all__ = ["ReferenceDecoder", "Sample", "open_block"]


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
        self._target = target
        self._rounds = Rounds(
            target.spec, rule=rule, drafter=drafter, budget=budget, verifier=verifier
        )

    def decode(self, sample: Sample) -> Decoded:
        """Decode to the end."""
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
            look = self._look(pages, block, pending, trajectory.cost)
            state, end = self._rounds.decode_block(sample, trajectory, root, start, look)
            if end is not None:
                return finished(trajectory, end)
            pending, block = [self._store(state, block)], block + 1

    def _store(self, state: State, block: int) -> Unit:
        """A finished block whose keys and values enter page number ``block``."""
        start = block * self._target.spec.block_length
        return Unit(state=state, start=start, pages=tuple(range(block)), write=block)

    def _look(self, pages: KVPages, block: int, pending: list[Unit], cost: Cost) -> Look:
        """Evaluation behind the pages before a block; the first one stores what is pending."""
        table, start = tuple(range(block)), block * self._target.spec.block_length

        def look(states: list[State]) -> Conditionals:
            units = [Unit(state=state, start=start, pages=table) for state in states]
            found = evaluate(self._target, units + pending, pages, num_states=len(units))
            cost.positions += (len(units) + len(pending)) * len(states[0])
            pending.clear()
            return found

        return look
