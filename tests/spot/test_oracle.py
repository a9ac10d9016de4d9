"""Oracles: what they propose, and that the joint one is always right."""

import math

import pytest
import torch

from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.base import DraftRequest, Drafts
from spot.drafters.oracle import OracleDrafter, OracleKind
from spot.limits import Limits
from spot.trajectory import Commit, Move, Trajectory
from spot.transition import Rule, draw
from tests.spot import toy
from tests.spot.drafting import MASK_ID, START, peaked, request_for
from tests.spot.lineup import prompts

BEST = [0.5, 0.9, 0.7, 0.8]
STALE = [2, 3, 4, 5]  # best stale tokens
BY_CONFIDENCE = [1, 3, 2, 0]
KEY = 7
BLANK = [MASK_ID] * 4
Pairs = list[tuple[int, int]]


def _moves(*moves: Pairs, start: int = START) -> list[Move]:
    return [tuple(Commit(start + p, t, -0.1, -0.1) for p, t in move) for move in moves]


# The end of the block before, the block in question, the beginning of the next.
TRUTH = [
    *_moves([(3, 9)], start=START - 4),
    *_moves([(2, 4)], [(0, 0)], [(3, 5)], [(1, 1)]),
    *_moves([(0, 8)], start=START + 4),
]
SETS = _moves([(2, 4)], [(0, 0), (3, 5)], [(1, 1)])


def _propose(
    kind: OracleKind, request: DraftRequest, moves: list[Move], rule: Rule | None = None
) -> list[list[int]]:
    oracle = OracleDrafter(kind, {KEY: moves, 8: []}, rule=rule or Rule(), mask_id=MASK_ID)
    found: Drafts = oracle.propose([request])[0]
    assert found.depths.tolist() == list(range(1, len(found.states) + 1))
    return [list(state) for state in found.states.tolist()]


def _request(*, step: int = 0, committed: tuple[int, ...] = (), **limits: int) -> DraftRequest:
    return request_for(
        peaked(BEST),
        key=KEY,
        step=step,
        committed=committed,
        budget=limits.get("budget", 100),
        full_states=bool(limits.get("full_states", 0)),
    )


def _chain(pairs: Pairs, root: list[int] | None = None) -> list[list[int]]:
    """States that hold the first 1, 2, .. of the pairs."""
    state, states = list(root or BLANK), []
    for position, token in pairs:
        state[position] = token
        states.append(list(state))
    return states


def test_the_joint_oracle_proposes_the_truth() -> None:
    found = _propose("joint", _request(), TRUTH)
    assert found == _chain([(2, 4), (0, 0), (3, 5)])  # the full state is of no use


def test_the_position_oracle_fills_true_positions_with_stale_tokens() -> None:
    found = _propose("position", _request(full_states=1), TRUTH)
    assert found == _chain([(p, STALE[p]) for p in (2, 0, 3, 1)])


def test_above_temperature_0_those_are_coupled_draws() -> None:
    rule = Rule(temperature=1.5)
    keys, positions = torch.full((4,), KEY), START + torch.arange(4)
    drawn = draw(peaked(BEST), keys=keys, positions=positions, rule=rule).tolist()
    found = _propose("position", _request(full_states=1), TRUTH, rule)
    assert found == _chain([(p, drawn[p]) for p in (2, 0, 3, 1)])


def test_the_token_oracle_puts_true_tokens_in_the_order_of_stale_confidence() -> None:
    truth = {0: 0, 1: 1, 2: 4, 3: 5}
    found = _propose("token", _request(full_states=1), TRUTH)
    assert found == _chain([(p, truth[p]) for p in BY_CONFIDENCE])


def test_oracles_go_on_from_the_step_of_the_root() -> None:
    request = _request(step=2, committed=(0, 2), full_states=1)
    root = request.root.tolist()
    assert _propose("joint", request, TRUTH) == _chain([(3, 5), (1, 1)], root)
    assert _propose("position", request, TRUTH) == _chain([(3, 5), (1, 3)], root)
    assert _propose("token", request, TRUTH) == _chain([(1, 1), (3, 5)], root)


def test_oracles_commit_the_sets_of_the_threshold_rule_together() -> None:
    rule = Rule(name="threshold", tau=0.5)
    one, two, three = _chain([(2, 4), (0, 0), (3, 5)])
    last = _chain([(1, 1)], three)
    assert two not in _propose("joint", _request(full_states=1), SETS, rule)
    assert _propose("joint", _request(full_states=1), SETS, rule) == [one, three, *last]
    by_position = _chain([(p, STALE[p]) for p in (2, 0, 3, 1)])
    found = _propose("position", _request(full_states=1), SETS, rule)
    assert found == [by_position[0], *by_position[2:]]


@pytest.mark.parametrize("kind", ["position", "token", "joint"])
def test_oracles_keep_to_the_budget_and_to_what_was_recorded(kind: OracleKind) -> None:
    assert len(_propose(kind, _request(budget=2), TRUTH)) == 2
    ended = _propose("joint", _request(full_states=1), TRUTH[:3])  # the sample stopped here
    assert len(ended) == 2


TARGET = toy.ToyTarget(toy.mixed_table)
SAMPLES = prompts(4, keys=1, limits=Limits(prompt_tokens=4, max_tokens=8))


def _decoded(sample: Sample, rule: Rule, drafter: OracleDrafter | None, budget: int) -> Trajectory:
    decoder = ReferenceDecoder(TARGET, rule=rule, drafter=drafter, budget=budget)
    return decoder.decode(sample).trajectory


@pytest.mark.parametrize("budget", [1, 2, 8])
@pytest.mark.parametrize(
    "rule",
    [Rule(), Rule(temperature=1.5), Rule(name="threshold", tau=0.5, temperature=0.7)],
    ids=["greedy", "sampled", "threshold"],
)
def test_the_joint_oracle_is_always_accepted(rule: Rule, budget: int) -> None:
    for sample in SAMPLES:
        free = _decoded(sample, rule, None, 0)
        truth = {sample.key: free.moves}
        oracle = OracleDrafter("joint", truth, rule=rule, mask_id=toy.MASK_ID)
        cost = _decoded(sample, rule, oracle, budget).cost
        starts = [move[0].position // toy.LENGTH for move in free.moves]
        per_block = [starts.count(block) for block in sorted(set(starts))]
        assert cost.rounds == sum(1 + math.ceil((m - 1) / (budget + 1)) for m in per_block)
        assert cost.accepted == cost.drafted
