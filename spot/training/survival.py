"""How often the stale token hypothesis of a position is what is committed there, by its margin.

Looks on while samples are decoded without drafts. At every root that could be drafted from, the
first hypothesis of each masked position is compared with the token that is committed there within
the next transitions of the block.

Legend: R roots of a block, L block length.
"""

from dataclasses import dataclass, field

import numpy as np
import torch

from spot.drafters.base import DraftRequest, Stale
from spot.drafters.batch import stack
from spot.drafters.hypotheses import candidates
from spot.targets.base import State
from spot.training.calibrate import Tally
from spot.training.spiffy_ranks import SeenEntry
from spot.trajectory import Move
from spot.transition import Rule
from spot.verification import Walk

LOOKAHEAD = 24  # transitions behind a root


@dataclass(slots=True)
class _Block:
    """A block being decoded."""

    start: int
    requests: list[DraftRequest] = field(default_factory=list)  # its roots with stale conditionals
    steps: list[int] = field(default_factory=list)  # the transition that each root makes
    when: dict[int, int] = field(default_factory=dict)  # by position in the block
    token: dict[int, int] = field(default_factory=dict)
    moves: int = 0


class SurvivalRecorder:
    """Counts survivals by margin."""

    def __init__(self, *, rule: Rule, mask_id: int, lookahead: int = LOOKAHEAD) -> None:
        self._rule, self._mask_id, self._lookahead = rule, mask_id, lookahead
        self._blocks: dict[int, _Block] = {}
        self._tally = Tally()

    def walked(self, entry: SeenEntry, made: Walk, fresh: Stale) -> None:
        """The engine's observer."""
        sequence = entry.sequence
        (move,) = made.moves  # drafts would hide the stale conditionals of the states between
        start = sequence.block * len(sequence.root)
        self.observe(
            sequence.request.key, start=start, root=sequence.root, stale=sequence.stale, move=move
        )

    def observe(
        self, key: int, *, start: int, root: State, stale: Stale | None, move: Move
    ) -> None:
        """One round of one sample.

        Args:
            key: sample key.
            start: absolute position of the block.
            root: int64 [L].
            stale: None when the block opens; nothing could be drafted there.
            move: the transition that the root makes.
        """
        block = self._blocks.get(key)
        if block is None or block.start != start:
            self._close(key)
            block = self._blocks[key] = _Block(start)
        if stale is not None:
            request = DraftRequest(root=root, stale=stale, start=start, key=key, budget=0)
            block.requests.append(request)
            block.steps.append(block.moves)
        for commit in move:
            block.when[commit.position - start] = block.moves
            block.token[commit.position - start] = commit.token
        block.moves += 1

    def finish(self) -> Tally:
        """Survivals by margin; forgets them."""
        for key in list(self._blocks):
            self._close(key)
        tally, self._tally = self._tally, Tally()
        return tally

    @torch.inference_mode()
    def _close(self, key: int) -> None:
        block = self._blocks.pop(key, None)
        if block is None or not block.requests:
            return
        batch = stack(block.requests, mask_id=self._mask_id)
        found = candidates(batch, rule=self._rule, coupled=True, count=1)
        positions = np.array(list(block.when))
        when, token = np.array(list(block.when.values())), np.array(list(block.token.values()))
        ahead = when - np.array(block.steps)[:, None]
        seen = (ahead >= 0) & (ahead < self._lookahead)
        same = found.tokens[:, positions, 0].numpy() == token
        self._tally.add(found.margin[:, positions].numpy()[seen], same[seen])
