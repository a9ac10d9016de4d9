"""How often the stale token hypothesis of a position is what is committed there, by its margin.

Looks on while samples are decoded without drafts. At every root that could be drafted from, the
first hypothesis of each masked position is compared with the token that is committed there within
the next transitions of the block.

Legend: R roots of a block, L block length.
"""

from dataclasses import dataclass, field

import numpy as np
import torch

from spot.drafters.base import DraftRequest
from spot.drafters.batch import stack
from spot.drafters.hypotheses import candidates
from spot.training.calibrate import Tally
from spot.training.observing import BlockRecorder
from spot.trajectory import Move
from spot.transition import Rule

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


class SurvivalRecorder(BlockRecorder[_Block]):
    """Counts survivals by margin."""

    def __init__(self, *, rule: Rule, mask_id: int, lookahead: int = LOOKAHEAD) -> None:
        super().__init__()
        self._rule, self._mask_id, self._lookahead = rule, mask_id, lookahead
        self._tally = Tally()

    def finish(self) -> Tally:
        """Survivals by margin; forgets them."""
        self._close_all()
        tally, self._tally = self._tally, Tally()
        return tally

    def _open(self, start: int) -> _Block:
        return _Block(start)

    def _follow(self, block: _Block, request: DraftRequest | None, move: Move) -> None:
        if request is not None:
            block.requests.append(request)
            block.steps.append(block.moves)
        for commit in move:
            block.when[commit.position - block.start] = block.moves
            block.token[commit.position - block.start] = commit.token
        block.moves += 1

    @torch.inference_mode()
    def _end(self, block: _Block) -> None:
        if not block.requests:
            return
        batch = stack(block.requests, mask_id=self._mask_id)
        found = candidates(batch, rule=self._rule, coupled=True, count=1)
        positions = np.array(list(block.when))
        when, token = np.array(list(block.when.values())), np.array(list(block.token.values()))
        ahead = when - np.array(block.steps)[:, None]
        seen = (ahead >= 0) & (ahead < self._lookahead)
        same = found.tokens[:, positions, 0].numpy() == token
        self._tally.add(found.margin[:, positions].numpy()[seen], same[seen])
