"""Calibrating a Spiffy graph: which rank formulas draft-free decoding follows most often.

The union of the first k transitions behind a root is one formula, counted for every k up to the
lookahead. Formulas are then taken greedily by score, as long as the graph stays connected: by
their own count and their parents' (``degree1``, as Spiffy is described), or by their own count
alone (``own``: it maximises the expected number of accepted nodes, and is the stronger baseline).
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Literal, NamedTuple

from spot.drafters.spiffy_graph import GRAPH_SIZE, LOOKAHEAD, ROOT, SpiffyGraph, SpiffyNode
from spot.training.spiffy_ranks import Formula, RankPath, Ranks

START: Formula = frozenset()
Score = Literal["own", "degree1"]


class _Counts(NamedTuple):
    """How often formulas were reached, and from where."""

    reached: Counter[Formula]
    parents: dict[Formula, set[Formula]]  # counted formulas, or ``START``
    by: Score

    def score(self, formula: Formula) -> int:
        """What speaks for a formula; the root counts for nothing, it is always there."""
        own = self.reached[formula]
        if self.by == "own":
            return own
        return own + sum(self.reached[p] for p in self.parents[formula])


def _count(paths: list[RankPath], lookahead: int, *, by: Score) -> _Counts:
    """Count every prefix of every path.

    A parent is a formula that was seen one transition before, or that holds one pair fewer.
    """
    reached: Counter[Formula] = Counter()
    parents: dict[Formula, set[Formula]] = defaultdict(set)
    for path in paths:
        behind = START
        for ranks in path[:lookahead]:
            formula = behind | ranks
            reached[formula] += 1
            parents[formula].add(behind)
            behind = formula
    for formula in reached:
        parents[formula] |= {formula - {p} for p in formula if formula - {p} in reached}
    return _Counts(reached, parents, by)


def _choose(counts: _Counts, size: int) -> list[Formula]:
    """Take the best formula that is a child of the root or of a taken one, ``size`` times.

    Ties go to the more frequent, then to the smaller formula, then to the lower ranks.
    """
    children: dict[Formula, list[Formula]] = defaultdict(list)
    for formula, parents in counts.parents.items():
        for parent in parents:
            children[parent].append(formula)
    taken: list[Formula] = []
    seen: set[Formula] = set()
    heap: list[tuple[tuple[int, int, int, list[Ranks]], Formula]] = []
    behind = START
    while True:
        for child in set(children[behind]) - seen:
            seen.add(child)
            urgency = -counts.score(child), -counts.reached[child], len(child), sorted(child)
            heapq.heappush(heap, (urgency, child))
        if not heap or len(taken) == size:
            return taken
        behind = heapq.heappop(heap)[1]
        taken.append(behind)


def calibrate_spiffy(
    paths: Iterable[RankPath],
    *,
    block_length: int,
    target: str,
    data: str,
    size: int = GRAPH_SIZE,
    lookahead: int = LOOKAHEAD,
    score: Score = "degree1",
) -> SpiffyGraph:
    """The draft graph of what was observed.

    Args:
        paths: one per observed root; see ``RankRecorder``.
        block_length: of the target.
        target: its name, for the record.
        data: name of the prompts, for the record.
        size: most nodes to take.
        lookahead: transitions of each path to count.
        score: how formulas are compared.

    Complexity: linear in the counted formulas, up to a logarithm.

    Raises:
        ValueError: nothing was observed.
    """
    observed = list(paths)
    counts = _count(observed, lookahead, by=score)
    taken = _choose(counts, size)
    if not taken:
        raise ValueError(f"{data}: no transition behind a root was observed: give more prompts")
    index = {START: ROOT} | {formula: i for i, formula in enumerate(taken)}
    nodes = tuple(
        SpiffyNode(
            pairs=tuple(sorted(formula)),
            parents=tuple(sorted(index[p] for p in counts.parents[formula] if index.get(p, i) < i)),
            count=counts.reached[formula],
        )
        for i, formula in enumerate(taken)
    )
    return SpiffyGraph(
        lookahead=lookahead,
        size=size,
        block_length=block_length,
        target=target,
        data=data,
        num_roots=len(observed),
        nodes=nodes,
    )
