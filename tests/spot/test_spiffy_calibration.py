"""Observing ranks, and choosing a graph from them."""

import itertools
from collections import Counter

import numpy as np
import pytest

from spot.drafters.base import STALE_TOP, DraftRequest, Stale
from spot.drafters.spiffy import rankings
from spot.drafters.spiffy_graph import ROOT, SpiffyGraph
from spot.training.spiffy import Score, calibrate_spiffy
from spot.training.spiffy_ranks import Formula, RankPath, RankRecorder, ranks_of
from spot.trajectory import Commit, Move
from spot.transition import Rule

MASK_ID, LENGTH, START = 9999, 5, 40
GREEDY = Rule()
ORDER = [3, 1, 2, 4, 0]  # the surest first


def _stale(order: list[int]) -> Stale:
    """Rank j at position p is token 100 p + j."""
    probs = np.tile(np.geomspace(1e-3, 1e-6, STALE_TOP), (LENGTH, 1))
    probs[order, 0] = np.linspace(0.99, 0.5, LENGTH)
    return Stale(
        log_probs=np.log(probs).astype(np.float16),
        doubts=np.log(-np.log(probs[:, 0])).astype(np.float16),
        tokens=100 * np.arange(LENGTH)[:, None] + np.arange(STALE_TOP),
        masked=np.ones(LENGTH, bool),
    )


def _move(*commits: tuple[int, int], start: int = START) -> Move:
    """A transition that commits ranks at positions of the block."""
    return tuple(Commit(start + p, 100 * p + rank, 0.0, 0.0) for p, rank in commits)


def _root(*committed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    root = np.full(LENGTH, MASK_ID, np.int64)
    root[list(committed)] = 1
    return root


def _ranks(move: Move, *, root: tuple[int, ...] = (), rule: Rule = GREEDY) -> Formula | None:
    request = DraftRequest(root=_root(*root), stale=_stale(ORDER), start=START, key=7, budget=0)
    (ranking,) = rankings([request], rule=rule, mask_id=MASK_ID, coupled=False)
    return ranks_of(ranking, move, start=START)


def _formula(*pairs: tuple[int, int]) -> Formula:
    return frozenset(pairs)


def test_a_move_becomes_ranks_among_what_is_masked_at_the_root() -> None:
    assert _ranks(_move((2, 4))) == _formula((2, 4))
    assert _ranks(_move((2, 4)), root=(3, 0)) == _formula((1, 4))
    assert _ranks(_move((0, 1), (3, 0))) == _formula((4, 1), (0, 0))


def test_a_token_outside_the_stale_candidates_has_no_rank() -> None:
    assert _ranks(_move((3, 0), (1, STALE_TOP))) is None


def test_a_token_that_the_rule_would_never_draw_has_no_rank() -> None:
    rule = Rule(temperature=1.0, top_k=2)
    assert _ranks(_move((1, 1)), rule=rule) == _formula((1, 1))
    assert _ranks(_move((1, 2)), rule=rule) is None


class _Block:
    """Feeds a recorder a block, round by round."""

    def __init__(self, recorder: RankRecorder, *, key: int = 7, start: int = START) -> None:
        self._recorder, self._key, self._start = recorder, key, start
        self._committed: list[int] = []

    def round(self, *commits: tuple[int, int], stale: Stale | None) -> None:
        self._recorder.observe(
            self._key,
            start=self._start,
            root=_root(*self._committed),
            stale=stale,
            move=_move(*commits, start=self._start),
        )
        self._committed += [position for position, _ in commits]


def _recorder(lookahead: int = 6) -> RankRecorder:
    return RankRecorder(rule=GREEDY, mask_id=MASK_ID, lookahead=lookahead)


def test_every_root_with_stale_conditionals_is_followed_by_ranks_of_its_own() -> None:
    recorder = _recorder()
    block = _Block(recorder)
    block.round((3, 0), stale=None)
    block.round((2, 0), stale=_stale(ORDER))
    block.round((0, 1), stale=_stale([0, 1, 2, 3, 4]))
    block.round((1, 0), stale=_stale([4, 1, 2, 3, 0]))
    first = (_formula((1, 0)), _formula((3, 1)), _formula((0, 0)))
    second = (_formula((0, 1)), _formula((1, 0)))
    third = (_formula((1, 0)),)
    assert Counter(recorder.finish()) == Counter([first, second, third])
    assert recorder.finish() == []


def test_a_path_ends_at_the_lookahead() -> None:
    recorder = _recorder(lookahead=2)
    block = _Block(recorder)
    block.round((3, 0), stale=_stale(ORDER))
    block.round((1, 0), stale=None)
    block.round((2, 0), stale=None)
    assert recorder.finish() == [(_formula((0, 0)), _formula((1, 0)))]


def test_a_path_ends_where_a_token_has_no_rank_even_if_it_is_the_first() -> None:
    recorder = _recorder()
    block = _Block(recorder)
    block.round((3, 0), stale=_stale(ORDER))
    block.round((2, STALE_TOP), stale=_stale(ORDER))
    block.round((4, 0), stale=None)
    assert Counter(recorder.finish()) == Counter([(_formula((0, 0)),), ()])


def test_a_path_ends_with_its_block() -> None:
    recorder = _recorder()
    _Block(recorder).round((3, 0), stale=_stale(ORDER))
    _Block(recorder, start=START + LENGTH).round((1, 0), stale=None)
    assert recorder.finish() == [(_formula((0, 0)),)]


def test_samples_in_flight_together_are_kept_apart() -> None:
    recorder = _recorder()
    one, other = _Block(recorder, key=1), _Block(recorder, key=2)
    one.round((3, 0), stale=_stale(ORDER))
    other.round((1, 0), stale=_stale(ORDER))
    one.round((2, 0), stale=None)
    expected = [(_formula((0, 0)), _formula((2, 0))), (_formula((1, 0)),)]
    assert Counter(recorder.finish()) == Counter(expected)


def test_a_transition_of_several_commits_is_one_step_of_a_path() -> None:
    recorder = _recorder()
    block = _Block(recorder)
    block.round((3, 0), (4, 0), stale=_stale(ORDER))
    block.round((1, 0), stale=None)
    assert recorder.finish() == [(_formula((0, 0), (3, 0)), _formula((1, 0)))]


def _calibrate(
    paths: list[RankPath], *, size: int = 24, lookahead: int = 6, score: Score = "degree1"
) -> SpiffyGraph:
    return calibrate_spiffy(
        paths,
        block_length=32,
        target="t",
        data="prompts",
        size=size,
        lookahead=lookahead,
        score=score,
    )


def _path(*position_ranks: int) -> RankPath:
    return tuple(_formula((rank, 0)) for rank in position_ranks)


def _random_paths(seed: int, *, largest: int = 1) -> list[RankPath]:
    """Mostly in order of rank, as real ones are; transitions of up to ``largest`` pairs."""
    rng = np.random.default_rng(seed)
    paths = []
    for _ in range(30):
        order = np.argsort(np.arange(6) + rng.normal(0, 1.5, 6))
        pairs = [(int(i), int(rng.random() < 0.2)) for i in order[: rng.integers(0, 6)]]
        sizes = rng.integers(1, largest + 1, len(pairs))
        ends = [e for e in np.cumsum(sizes) if e <= len(pairs)]
        starts = [0, *ends]
        paths.append(tuple(frozenset(pairs[a:b]) for a, b in zip(starts, ends, strict=False)))
    return paths


def _naive(paths: list[RankPath], size: int, lookahead: int, by: Score) -> list[Formula]:
    """The definition: look at all formulas for each node that is taken."""
    walks = [
        [frozenset().union(*p[:k]) for k in range(lookahead + 1) if k <= len(p)] for p in paths
    ]
    count = Counter(q for walk in walks for q in walk[1:])

    def is_child(q: Formula, p: Formula) -> bool:
        seen = any((p, q) in itertools.pairwise(walk) for walk in walks)
        return seen or (p < q and len(q) == len(p) + 1 and p in count)

    def key(q: Formula) -> tuple[int, int, int, list[tuple[int, int]]]:
        parents = sum(count[p] for p in count if is_child(q, p)) if by == "degree1" else 0
        score = count[q] + parents
        return -score, -count[q], len(q), sorted(q)

    taken: list[Formula] = []
    while len(taken) < size:
        able = [
            q
            for q in count
            if q not in taken
            and any(is_child(q, p) for p in [frozenset[tuple[int, int]](), *taken])
        ]
        if not able:
            break
        taken.append(min(able, key=key))
    return taken


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("largest", [1, 3], ids=["strict", "sets"])
@pytest.mark.parametrize(("size", "lookahead"), [(5, 6), (12, 6), (12, 2)])
@pytest.mark.parametrize("score", ["degree1", "own"])
def test_the_graph_is_what_looking_at_everything_for_each_node_gives(
    seed: int, largest: int, size: int, lookahead: int, score: Score
) -> None:
    paths = _random_paths(seed, largest=largest)
    graph = _calibrate(paths, size=size, lookahead=lookahead, score=score)
    expected = _naive(paths, size, lookahead, score)
    assert [frozenset(node.pairs) for node in graph.nodes] == expected


def test_counts_are_of_roots_and_orders_that_reach_the_same_set_are_one_formula() -> None:
    graph = _calibrate([_path(0, 1), _path(1, 0), _path(0, 2), ()])
    nodes = {tuple(i for i, _ in node.pairs): node for node in graph.nodes}
    assert graph.num_roots == 4
    assert {ranks: node.count for ranks, node in nodes.items()} == {
        (0,): 2,
        (1,): 1,
        (0, 1): 2,
        (0, 2): 1,
    }
    names = [ROOT if p == ROOT else graph.nodes[p].pairs for p in nodes[0, 1].parents]
    assert names == [((0, 0),)]  # rank 1 alone was taken later


def test_a_formula_counts_as_much_as_it_and_its_parents_were_reached() -> None:
    paths = [_path(0, 1)] * 3 + [_path(0, 2)] * 2 + [_path(3)] * 4
    graph = _calibrate(paths, size=3)
    taken = [tuple(i for i, _ in node.pairs) for node in graph.nodes]
    assert taken == [(0,), (0, 1), (0, 2)]  # 5, 3 + 5 and 2 + 5, all before 4


def test_by_its_own_count_alone_a_formula_gains_nothing_from_its_parents() -> None:
    paths = [_path(0, 1)] * 3 + [_path(0, 2)] * 2 + [_path(3)] * 4
    taken = [tuple(i for i, _ in n.pairs) for n in _calibrate(paths, size=3, score="own").nodes]
    assert taken == [(0,), (3,), (0, 1)]  # 5, 4 and 3


def test_a_smaller_graph_is_the_beginning_of_a_larger_one() -> None:
    large = _calibrate(_random_paths(3)).nodes
    for size in (1, 7, 15):
        assert _calibrate(_random_paths(3), size=size).nodes == large[:size]


@pytest.mark.parametrize("largest", [1, 3])
def test_the_order_of_observation_does_not_matter(largest: int) -> None:
    paths = _random_paths(4, largest=largest)
    assert _calibrate(paths) == _calibrate(paths[::-1])


def test_a_transition_may_lead_to_a_child_that_is_several_pairs_larger() -> None:
    pair, rest = _formula((0, 0), (1, 0)), _formula((2, 0), (3, 0))
    graph = _calibrate([(pair, rest)])
    found = {frozenset(node.pairs): node.parents for node in graph.nodes}
    assert found == {pair: (ROOT,), pair | rest: (0,)}


@pytest.mark.parametrize("paths", [[], [(), ()]])
def test_a_graph_of_nothing_is_refused(paths: list[RankPath]) -> None:
    with pytest.raises(ValueError, match=r"prompts: no transition .* give more prompts"):
        _calibrate(paths)
