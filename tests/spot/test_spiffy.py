"""Draft graphs: their file, and what they propose at a root."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spot.conditionals import stale_of
from spot.drafters.base import STALE_TOP, DraftRequest, Drafts, Stale
from spot.drafters.checkpoint import DrafterError
from spot.drafters.spiffy import SpiffyDrafter
from spot.drafters.spiffy_graph import (
    GRAPH,
    ROOT,
    TOKEN_RANKS,
    SpiffyGraph,
    SpiffyNode,
    check_graph,
    read_graph,
    write_graph,
)
from spot.transition import Rule, draw
from tests.spot.drafting import conditionals_of

MASK_ID, LENGTH, START, KEY = 9999, 5, 40, 7
GREEDY = Rule()
BEST = [0.5, 0.9, 0.7, 0.99, 0.6]  # the surest first: 3, 1, 2, 4, 0

Formula = tuple[tuple[int, int], ...]


def _node(pairs: Formula, parents: tuple[int, ...] = (ROOT,), count: int = 1) -> SpiffyNode:
    return SpiffyNode(pairs=pairs, parents=parents, count=count)


def _graph(*nodes: SpiffyNode, num_roots: int = 10) -> SpiffyGraph:
    return SpiffyGraph(
        lookahead=6,
        size=24,
        block_length=LENGTH,
        target="t",
        data="d",
        num_roots=num_roots,
        nodes=nodes,
    )


def _stale() -> Stale:
    """Rank j at position p is token 100 p + j."""
    probs = np.full((LENGTH, STALE_TOP), 1e-6)
    probs[:, 0] = BEST
    probs[:, 1:] = np.geomspace(1e-3, 1e-6, STALE_TOP - 1)
    return Stale(
        log_probs=np.log(probs).astype(np.float16),
        doubts=np.log(-np.log(probs[:, 0])).astype(np.float16),
        tokens=100 * np.arange(LENGTH)[:, None] + np.arange(STALE_TOP),
        masked=np.ones(LENGTH, bool),
    )


def _request(
    *,
    stale: Stale | None = None,
    committed: tuple[int, ...] = (),
    budget: int = 24,
    full_states: bool = False,
) -> DraftRequest:
    root = np.full(LENGTH, MASK_ID, np.int64)
    root[list(committed)] = 1
    return DraftRequest(
        root=root,
        stale=stale or _stale(),
        start=START,
        key=KEY,
        budget=budget,
        full_states=full_states,
    )


def _propose(graph: SpiffyGraph, request: DraftRequest, rule: Rule = GREEDY) -> Drafts:
    return SpiffyDrafter(graph, rule=rule, mask_id=MASK_ID).propose([request])[0]


def _filled(drafts: Drafts, request: DraftRequest) -> list[dict[int, int]]:
    """What each draft adds to the root."""
    return [{int(p): int(s[p]) for p in np.flatnonzero(s != request.root)} for s in drafts.states]


def _random_graph(seed: int) -> SpiffyGraph:
    """Each node is the root or an earlier node, and one pair more."""
    rng = np.random.default_rng(seed)
    nodes: dict[Formula, SpiffyNode] = {}
    while len(nodes) < 24:
        parent = int(rng.integers(ROOT, len(nodes)))
        held = dict(() if parent == ROOT else list(nodes)[parent])
        new = (int(rng.integers(LENGTH)), int(rng.integers(3)))
        pairs = tuple(sorted((held | dict([new])).items()))
        if new[0] not in held and pairs not in nodes:
            nodes[pairs] = _node(pairs, (parent,), int(rng.integers(1, 11)))
    return _graph(*nodes.values())


def test_a_formula_names_positions_by_confidence_and_tokens_by_rank() -> None:
    graph = _graph(_node(((0, 0),)), _node(((0, 0), (1, 2)), (0,)), _node(((3, 1),)))
    request = _request()
    assert _filled(_propose(graph, request), request) == [
        {3: 300},
        {3: 300, 1: 102},
        {4: 401},
    ]


def test_positions_are_ranked_among_those_masked_at_the_root() -> None:
    request = _request(committed=(3, 2))
    drafts = _propose(_graph(_node(((0, 0),)), _node(((2, 0),))), request)
    assert _filled(drafts, request) == [{1: 100}, {0: 0}]
    assert (drafts.states[:, [2, 3]] == 1).all()


def test_a_mass_is_a_share_of_the_roots_and_no_more_than_the_heaviest_earlier_parent_has() -> None:
    graph = _graph(
        _node(((0, 0),), count=5),
        _node(((0, 0), (1, 0)), (0,), count=7),
        _node(((1, 0),), count=6),
        _node(((1, 0), (2, 0)), (2,), count=2),
    )
    request = _request()
    drafts = _propose(graph, request)
    assert drafts.masses == pytest.approx([0.6, 0.5, 0.5, 0.2])
    assert _filled(drafts, request) == [{1: 100}, {3: 300}, {3: 300, 1: 100}, {1: 100, 2: 200}]


def test_a_node_behind_two_parents_weighs_no_more_than_the_heavier_one() -> None:
    graph = _graph(
        _node(((0, 0),), count=6),
        _node(((1, 0),), count=5),
        _node(((0, 0), (1, 0)), (0, 1), count=7),
    )
    assert graph.masses() == pytest.approx([0.6, 0.5, 0.6])


def test_depth_counts_transitions_by_the_shortest_way() -> None:
    graph = _graph(
        _node(((0, 0),)),
        _node(((0, 0), (1, 0), (2, 0)), (0,)),
        _node(((0, 0), (1, 0), (2, 0), (3, 0)), (ROOT, 1)),
    )
    assert graph.depths() == [1, 2, 1]
    assert _propose(graph, _request()).depths.tolist() == [1, 2, 1]


def test_a_budget_takes_the_first_nodes_of_the_graph() -> None:
    graph = _graph(
        _node(((0, 0),), count=1), _node(((0, 0), (1, 0)), (0,), count=1), _node(((2, 0),), count=9)
    )
    request = _request(budget=2)
    assert _filled(_propose(graph, request), request) == [{3: 300}, {3: 300, 1: 100}]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("budget", [1, 4, 24])
@pytest.mark.parametrize("committed", [(), (1,), (0, 3)])
def test_parents_come_before_children_and_masses_fall_whatever_is_cut(
    seed: int, budget: int, committed: tuple[int, ...]
) -> None:
    request = _request(budget=budget, committed=committed)
    drafts = _propose(_random_graph(seed), request)
    assert 0 < len(drafts.states) <= budget
    assert (np.diff(drafts.masses) <= 0).all()
    seen: list[dict[int, int]] = [{}]
    for filled in _filled(drafts, request):
        assert any(
            len(filled) == len(parent) + 1 and parent.items() <= filled.items() for parent in seen
        )
        seen.append(filled)


def test_nodes_that_need_more_positions_than_are_masked_are_dropped() -> None:
    graph = _graph(_node(((3, 0),)), _node(((0, 0),)), _node(((0, 0), (3, 0)), (0,)))
    request = _request(committed=(0, 4))
    assert _filled(_propose(graph, request), request) == [{3: 300}]


@pytest.mark.parametrize("full_states", [False, True])
def test_full_states_are_drafted_only_where_they_are_of_use(full_states: bool) -> None:
    graph = _graph(_node(((0, 0),)), _node(((0, 0), (1, 0)), (0,)))
    request = _request(committed=(0, 2, 4), full_states=full_states)
    expected = [{3: 300}, {3: 300, 1: 100}]
    assert _filled(_propose(graph, request), request) == expected[: 1 + full_states]


def test_requests_of_one_call_do_not_disturb_each_other() -> None:
    drafter = SpiffyDrafter(_random_graph(0), rule=GREEDY, mask_id=MASK_ID)
    requests = [_request(committed=(b,), budget=budget) for b, budget in enumerate((3, 0, 9))]
    together = drafter.propose(requests)
    assert [len(drafts.states) for drafts in together] == [3, 0, 9]
    for request, drafts in zip(requests, together, strict=True):
        assert np.array_equal(drafts.states, drafter.propose([request])[0].states)


@pytest.mark.parametrize("rule", [Rule(temperature=1.0), Rule(temperature=1.5, top_p=0.8)])
@pytest.mark.parametrize("coupled", [True, False])
def test_above_temperature_0_the_first_token_is_the_coupled_draw_or_else_the_best(
    rule: Rule, coupled: bool
) -> None:
    logits = 3 * torch.randn(LENGTH, STALE_TOP, generator=torch.Generator().manual_seed(0))
    found = conditionals_of(logits)
    drawn = draw(
        logits,
        keys=torch.full((LENGTH,), KEY),
        positions=START + torch.arange(LENGTH),
        rule=rule,
    )
    best = logits.argmax(-1)
    assert not torch.equal(drawn, best)
    graph = _graph(*(_node(((i, 0),)) for i in range(LENGTH)))
    drafter = SpiffyDrafter(graph, rule=rule, mask_id=MASK_ID, coupled=coupled)
    request = _request(stale=stale_of(found, [0])[0])
    added = {p: t for f in _filled(drafter.propose([request])[0], request) for p, t in f.items()}
    assert added == dict(enumerate((drawn if coupled else best).tolist()))


def test_a_written_graph_is_read_and_drafts_the_same(tmp_path: Path) -> None:
    graph, request = _random_graph(1), _request()
    write_graph(graph, tmp_path / "made")
    assert read_graph(tmp_path / "made") == graph
    loaded = SpiffyDrafter.load(tmp_path / "made", rule=GREEDY, mask_id=MASK_ID)
    assert np.array_equal(loaded.propose([request])[0].states, _propose(graph, request).states)
    assert [path.name for path in (tmp_path / "made").iterdir()] == [GRAPH]


def test_only_another_block_length_is_a_warning(tmp_path: Path) -> None:
    write_graph(_random_graph(1), tmp_path)
    assert check_graph(tmp_path, LENGTH) == []
    (warning,) = check_graph(tmp_path, 32)
    assert warning.startswith(f"drafter.path {tmp_path} was calibrated at block length 5, the tar")


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(DrafterError, match=f"{tmp_path / GRAPH} is missing"):
        read_graph(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_file_that_is_no_graph_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / GRAPH).write_text(text)
    with pytest.raises(DrafterError, match=f"{tmp_path / GRAPH} is not a Spiffy graph"):
        read_graph(tmp_path)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"format": "spotbatch-drafter"}, "format: "),
        ({"version": 2}, "version: "),
        ({"block_length": None}, "block_length: "),
        ({"lookahead": 0}, "lookahead: "),
        ({"num_roots": 0}, "num_roots: "),
        ({"target": 3}, "target: "),
        ({"new": 1}, "new: "),
        ({"nodes": []}, "nodes: "),
        ({"size": 1}, "nodes: .*2 nodes exceed size 1"),
    ],
)
def test_another_format_is_an_error_that_names_the_field(
    tmp_path: Path, fields: dict[str, Any], complaint: str
) -> None:
    _write_changed(tmp_path, fields)
    with pytest.raises(DrafterError, match=rf"spiffy.json is not .*\({complaint}.*again"):
        read_graph(tmp_path)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"pairs": []}, "nodes.1.pairs: "),
        ({"pairs": [[0, 0], [1, "0"]]}, "nodes.1.pairs.1.1: "),
        ({"pairs": [[-1, 0], [0, 0]]}, "nodes.1.pairs.0.0: "),
        ({"pairs": [[0, 0], [1, TOKEN_RANKS]]}, "nodes.1.pairs.1.1: "),
        ({"parents": []}, "nodes.1.parents: "),
        ({"count": 0}, "nodes.1.count: "),
        ({"weight": 1}, "nodes.1.weight: "),
        ({"pairs": [[0, 0], [0, 1]]}, "nodes: .*node 1: position ranks must be distinct"),
        ({"pairs": [[1, 0], [0, 0]]}, "nodes: .*node 1: position ranks must be .* ascending"),
        ({"pairs": [[0, 0], [LENGTH, 0]]}, "nodes: .*node 1: a block has 5 position ranks"),
        ({"parents": [1]}, "nodes: .*node 1: its parents must be earlier nodes"),
        ({"parents": [-2]}, "nodes: .*node 1: its parents must be earlier nodes"),
        ({"pairs": [[0, 1], [1, 0]]}, "nodes: .*node 1: parent 0 is no part of it"),
        ({"pairs": [[0, 0]]}, "nodes: .*node 1: parent 0 is no part of it"),
        ({"pairs": [[0, 0]], "parents": [ROOT]}, "nodes: .*a formula is there twice"),
        ({"count": 11}, "nodes: .*node 1: counted more often than the 10 roots"),
    ],
)
def test_a_bad_node_is_an_error_that_names_it(
    tmp_path: Path, fields: dict[str, Any], complaint: str
) -> None:
    first = {"pairs": [[0, 0]], "parents": [ROOT], "count": 3}
    second = {"pairs": [[0, 0], [1, 0]], "parents": [0], "count": 1}
    _write_changed(tmp_path, {"nodes": [first, second | fields]})
    with pytest.raises(DrafterError, match=rf"spiffy.json is not .*\({complaint}.*again"):
        read_graph(tmp_path)


def _write_changed(directory: Path, fields: dict[str, Any]) -> None:
    good = _graph(_node(((0, 0),)), _node(((0, 0), (1, 0)), (0,)))
    (directory / GRAPH).write_text(json.dumps(good.model_dump() | fields))


def test_looking_at_a_graph_does_not_import_torch(tmp_path: Path) -> None:
    write_graph(_random_graph(1), tmp_path)
    code = (
        "import sys\n"
        "from spot.drafters.spiffy_graph import check_graph\n"
        f"check_graph({str(tmp_path)!r}, 8)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
