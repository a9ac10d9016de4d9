"""Spiffy on a random target: it learns from draft-free decoding, and never changes the output."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pytest

from spot.drafters.base import Drafter, DraftRequest, Stale
from spot.drafters.spiffy import SpiffyDrafter
from spot.drafters.spiffy_graph import ROOT, SpiffyGraph, SpiffyNode
from spot.limits import Limits
from spot.targets.base import State
from spot.targets.paged import PagedTarget
from spot.training.spiffy import calibrate_spiffy
from spot.training.spiffy_ranks import RankPath, RankRecorder
from spot.transition import Rule
from spot.verification import Walk
from tests.twins import BLOCK_LENGTH, MASK_ID, PAD_ID, STOP_ID
from workers.budget import FixedBudget
from workers.engine import Engine, EngineSettings, Observer
from workers.rounds import Entry
from workers.samples import SampleRequest, SampleResult

L = BLOCK_LENGTH
RULES = {
    "greedy": Rule(),
    "sampled": Rule(temperature=1.0, top_p=0.9),
    "threshold": Rule(name="threshold", tau=0.03),
}
BUDGET = 12


def _requests(seed: int, num: int) -> list[SampleRequest]:
    rng = np.random.default_rng(seed)
    return [
        SampleRequest(
            shard=0,
            row=row,
            sample=0,
            prompt_ids=tuple(int(i) for i in rng.integers(0, 256, rng.integers(1, 2 * L))),
            key=2**63 + 1000 * seed + row,  # keys have 64 bits
            max_tokens=3 * L,
        )
        for row in range(num)
    ]


def _limits(request: SampleRequest) -> Limits:
    return Limits(
        prompt_tokens=len(request.prompt_ids),
        max_tokens=request.max_tokens,
        stop_ids=frozenset({STOP_ID, PAD_ID}),
    )


def _decode(
    target: PagedTarget,
    requests: list[SampleRequest],
    rule: Rule,
    *,
    drafter: Drafter | None = None,
    observer: Observer | None = None,
) -> list[SampleResult]:
    engine = Engine(
        target,
        settings=EngineSettings(rule=rule, batch=4, num_pages=80, traced=True),
        limits=_limits,
        drafter=drafter,
        budget=FixedBudget(BUDGET if drafter else 0),
        observer=observer,
    )
    for request in requests:
        engine.add(request)
    results = []
    while engine.has_work():
        results += engine.step()
        engine.check()
    return sorted(results, key=lambda r: r.request.row)


def _calibrated(target: PagedTarget, rule: Rule) -> SpiffyGraph:
    recorder = RankRecorder(rule=rule, mask_id=MASK_ID)
    _decode(target, _requests(1, 12), rule, observer=recorder)
    return calibrate_spiffy(recorder.finish(), block_length=L, target="twin", data="random")


def _random_graph(rng: np.random.Generator) -> SpiffyGraph:
    """Best tokens at any positions, one more than in an earlier node."""
    formulas: list[set[int]] = []
    nodes: list[SpiffyNode] = []
    while len(nodes) < 24:
        parent = int(rng.integers(ROOT, len(nodes)))
        ranks = (set() if parent == ROOT else formulas[parent]) | {int(rng.integers(L))}
        if ranks not in formulas and (parent == ROOT or ranks != formulas[parent]):
            formulas.append(ranks)
            pairs = tuple((rank, 0) for rank in sorted(ranks))
            nodes.append(SpiffyNode(pairs=pairs, parents=(parent,), count=1))
    return SpiffyGraph(
        lookahead=24, size=24, block_length=L, target="", data="", num_roots=1, nodes=tuple(nodes)
    )


@pytest.fixture(scope="module")
def calibrated(twin: PagedTarget) -> dict[str, SpiffyGraph]:
    """A graph for each rule."""
    return {name: _calibrated(twin, rule) for name, rule in RULES.items()}


@pytest.mark.parametrize("name", RULES)
def test_decoding_along_a_calibrated_graph_equals_draft_free_decoding(
    twin: PagedTarget, calibrated: dict[str, SpiffyGraph], name: str
) -> None:
    rule, requests = RULES[name], _requests(2, 8)
    drafter = SpiffyDrafter(calibrated[name], rule=rule, mask_id=MASK_ID)
    drafted = _decode(twin, requests, rule, drafter=drafter)
    draft_free = _decode(twin, requests, rule)
    assert [r.trace for r in drafted] == [r.trace for r in draft_free]
    assert [r.finish_reason for r in drafted] == [r.finish_reason for r in draft_free]
    assert sum(r.nfe for r in drafted) < sum(r.nfe for r in draft_free)


def test_a_graph_for_the_threshold_rule_has_transitions_of_several_pairs(
    calibrated: dict[str, SpiffyGraph],
) -> None:
    def jumps(name: str) -> set[int]:
        nodes = calibrated[name].nodes
        held = [0 if n.parents == (ROOT,) else len(nodes[n.parents[-1]].pairs) for n in nodes]
        return {len(n.pairs) - before for n, before in zip(nodes, held, strict=True)}

    assert jumps("greedy") == {1}
    assert max(jumps("threshold")) > 1


@pytest.mark.parametrize("name", ["greedy", "sampled"])
def test_a_calibrated_graph_is_accepted_more_often_than_random_ones(
    twin: PagedTarget, calibrated: dict[str, SpiffyGraph], name: str
) -> None:
    rule, rng = RULES[name], np.random.default_rng(0)

    def accepted(graph: SpiffyGraph) -> int:
        drafter = SpiffyDrafter(graph, rule=rule, mask_id=MASK_ID)
        return sum(r.accepted for r in _decode(twin, _requests(2, 8), rule, drafter=drafter))

    randoms = [accepted(_random_graph(rng)) for _ in range(3)]
    assert accepted(calibrated[name]) > sum(randoms) / len(randoms)


@dataclass(frozen=True, slots=True)
class _Round:
    """What a drafter would be asked, if it were, and what followed."""

    root: State
    stale: Stale | None
    made: Walk


class _Rounds:
    """Keeps the rounds of every block, by sample key and start."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[int, int], list[_Round]] = defaultdict(list)

    def walked(self, entry: Entry, made: Walk, fresh: Stale) -> None:
        sequence = entry.sequence
        name = sequence.request.key, sequence.block * L
        self.blocks[name].append(_Round(sequence.root, sequence.stale, made))


def _path_behind(rounds: list[_Round], rule: Rule, *, key: int, start: int) -> RankPath:
    """The path behind the first root alone."""
    recorder = RankRecorder(rule=rule, mask_id=MASK_ID)
    for index, r in enumerate(rounds):
        stale = r.stale if index == 0 else None
        recorder.observe(key, start=start, root=r.root, stale=stale, move=r.made.moves[0])
    (path,) = recorder.finish()
    return path


@pytest.mark.parametrize("name", RULES)
def test_the_path_behind_a_root_drafts_there_what_the_target_did(
    twin: PagedTarget, name: str
) -> None:
    rule, seen = RULES[name], _Rounds()
    _decode(twin, _requests(1, 3), rule, observer=seen)
    num_states = 0
    for (key, start), block in seen.blocks.items():
        for first, round_ in enumerate(block):
            if round_.stale is None:
                continue
            request = DraftRequest(
                root=round_.root,
                stale=round_.stale,
                start=start,
                key=key,
                budget=24,
                full_states=True,
            )
            path = _path_behind(block[first:], rule, key=key, start=start)
            if path:
                graph = calibrate_spiffy([path], block_length=L, target="twin", data="random")
                drafter = SpiffyDrafter(graph, rule=rule, mask_id=MASK_ID)
                followed = [r.made.root for r in block[first:]][: len(path)]
                assert np.array_equal(drafter.propose([request])[0].states, np.stack(followed))
                num_states += len(path)
    assert num_states > 20
