"""What draft-free decoding does behind a root, as ranks: the observations that Spiffy counts.

Ranks are those of the stale conditionals at the root, as a drafter would have them: of the state
one transition before it. They are kept while the block goes on, and the transitions that follow are
read through them: under the strict rule one (position rank, token rank) pair each, under the
threshold rule a set of pairs.
"""

from dataclasses import dataclass, field

import numpy as np

from spot.drafters.base import DraftRequest
from spot.drafters.spiffy import Ranking, rankings
from spot.drafters.spiffy_graph import LOOKAHEAD
from spot.training.observing import BlockRecorder
from spot.trajectory import Move
from spot.transition import Rule

Ranks = tuple[int, int]
Formula = frozenset[Ranks]
RankPath = tuple[Formula, ...]
"""What each of the transitions behind a root commits; empty if not even the first has ranks."""


def ranks_of(ranking: Ranking, move: Move, *, start: int) -> Formula | None:
    """A transition as ranks at an earlier root of its block.

    Args:
        ranking: of what is masked at that root.
        move: the transition.
        start: absolute position of the block.

    Returns:
        None if a token has no rank: the stale conditionals do not hold it, or the rule never draws
        it from them.
    """
    pairs = set()
    for commit in move:
        (row,) = np.flatnonzero(ranking.positions == commit.position - start)
        same = (ranking.tokens[row] == commit.token) & (ranking.probabilities[row] > 0.0)
        if not same.any():
            return None
        pairs.add((int(row), int(same.argmax())))
    return frozenset(pairs)


@dataclass(slots=True)
class _Observed:
    """A root whose next transitions are still being made."""

    ranking: Ranking
    path: list[Formula] = field(default_factory=list)
    ended: bool = False

    def follow(self, move: Move, *, start: int, lookahead: int) -> None:
        ranks = ranks_of(self.ranking, move, start=start)
        if ranks is not None:
            self.path.append(ranks)
        self.ended = ranks is None or len(self.path) == lookahead


@dataclass(slots=True)
class _Block:
    """A block being decoded."""

    start: int
    open: list[_Observed] = field(default_factory=list)


class RankRecorder(BlockRecorder[_Block]):
    """Looks on while samples are decoded without drafts, and keeps the path behind every root."""

    def __init__(
        self, *, rule: Rule, mask_id: int, lookahead: int = LOOKAHEAD, coupled: bool = True
    ) -> None:
        super().__init__()
        self._rule, self._mask_id, self._coupled = rule, mask_id, coupled
        self._lookahead = lookahead
        self._paths: list[RankPath] = []

    def finish(self) -> list[RankPath]:
        """The paths behind all roots, in no particular order; forgets them."""
        self._close_all()
        paths, self._paths = self._paths, []
        return paths

    def _open(self, start: int) -> _Block:
        return _Block(start)

    def _follow(self, block: _Block, request: DraftRequest | None, move: Move) -> None:
        if request is not None:
            block.open.append(_Observed(self._rank(request)))
        for observed in block.open:
            observed.follow(move, start=block.start, lookahead=self._lookahead)
        self._paths += [tuple(o.path) for o in block.open if o.ended]
        block.open = [o for o in block.open if not o.ended]

    def _rank(self, request: DraftRequest) -> Ranking:
        return rankings([request], rule=self._rule, mask_id=self._mask_id, coupled=self._coupled)[0]

    def _end(self, block: _Block) -> None:
        self._paths += [tuple(o.path) for o in block.open]
