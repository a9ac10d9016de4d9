"""Accept-residual sampling on live states of a random target, with good and bad proposals.

Legend: L positions of a block, V vocabulary, K stale candidates.
"""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from spot.conditionals import stale_of
from spot.decoder import open_block
from spot.drafters.base import DraftRequest, Proposal, Stale
from spot.drafters.chain import ChainDrafter
from spot.noise import ACCEPTANCE, uniform
from spot.rejection import acceptance, rejection, residual
from spot.targets.base import Conditionals, State, Unit, evaluate
from spot.targets.paged import PagedTarget
from spot.trajectory import Commit
from spot.transition import Rule, draw, law
from spot.verification import Step, Transitions, successor, transitions
from tests.spot.chi_square import p_value
from tests.twins import BLOCK_LENGTH, MASK_ID, VOCAB_ROWS

L, NUM_STATES, KEY, STEP = BLOCK_LENGTH, 3, 3, 2
Floats = NDArray[np.float64]


class Live(NamedTuple):
    """A root with its own conditionals, and with those of the state one commit before it."""

    root: State
    fresh: Conditionals
    stale: Stale
    place: int  # selected position, in the block
    pi: Floats  # [V], law of its token
    phi: Transitions  # of the root
    rule: Rule


@pytest.fixture(
    scope="module",
    params=[Rule(temperature=1.5), Rule(temperature=1.5, top_p=0.9)],
    ids=["T1.5", "top_p"],
)
def lives(twin: PagedTarget, request: pytest.FixtureRequest) -> list[Live]:
    """The first states of a block, as draft-free decoding visits them."""
    rule, lives = request.param, []
    root = open_block(np.arange(3), 0, length=L, mask_id=MASK_ID)
    found = _evaluate(twin, root)
    for _ in range(NUM_STATES):
        stale, root = stale_of(found, [0])[0], successor(root, _phi(found, rule).move(0), start=0)
        found = _evaluate(twin, root)
        place = int(found.dense_confidence()[0].argmax())
        pi = law(found.logits[found.row_of[0, place].view(1)], rule)[0].numpy()
        lives.append(Live(root, found, stale, place, pi, _phi(found, rule), rule))
    return lives


def _evaluate(twin: PagedTarget, state: State) -> Conditionals:
    unit = Unit(state=state, start=0, pages=())
    return evaluate(twin, [unit], twin.new_pages(1), num_states=1)


def _phi(found: Conditionals, rule: Rule) -> Transitions:
    zero = torch.tensor([0])
    keys = torch.tensor([KEY])
    return transitions(found, states=zero, starts=zero, keys=keys, steps=zero, rule=rule)


def _links(live: Live, keys: list[int]) -> list[Proposal]:
    """What the chain proposes from real stale conditionals, under many keys."""
    drafter = ChainDrafter(rule=live.rule, mask_id=MASK_ID, sampled=True)
    requests = [
        DraftRequest(root=live.root, stale=live.stale, start=0, key=key, budget=1, step=STEP)
        for key in keys
    ]
    return [drafts.proposals[0] for drafts in drafter.propose(requests)]


def _proposal(position: int, tokens: NDArray[np.int64], weights: Floats) -> Proposal:
    """A proposal at one position, tokens [K] by weights [K]; which token is left open."""
    q = np.zeros((L, len(tokens)))
    q[position] = weights / weights.sum()
    return Proposal(position, -1, np.tile(tokens, (L, 1)), q)


def _shapes(live: Live) -> dict[str, Proposal]:
    """The chain's own law, and badly calibrated ones."""
    (link,) = _links(live, [KEY])
    tokens, weights = link.tokens[link.position], link.law[link.position]
    right, top = live.stale.tokens[live.place], live.stale.log_probs[live.place]
    mass = np.exp(top.astype(np.float64))
    wrong = next(p for p in np.flatnonzero(live.root == MASK_ID) if p != live.place)
    everywhere = _proposal(live.place, right, mass)
    return {
        "the chain's": _proposal(link.position, tokens, weights),
        "right place": _proposal(live.place, right, mass),
        "flattened": _proposal(live.place, right, mass**0.2),
        "sharpened": _proposal(live.place, right, mass**4),
        "shifted": _proposal(live.place, right, np.roll(mass, 1)),
        "repeated ids": _proposal(live.place, right // 2 * 2, mass),
        "wrong place": _proposal(int(wrong), right, mass),
        "everywhere": everywhere._replace(law=np.tile(everywhere.law[live.place] / L, (L, 1))),
    }


SHAPES = (
    "the chain's",
    "right place",
    "flattened",
    "sharpened",
    "shifted",
    "repeated ids",
    "wrong place",
    "everywhere",
)


def _dense(q: Proposal) -> Floats:
    """The law of a proposal over all pairs, [L, V]."""
    dense = np.zeros((L, VOCAB_ROWS))
    np.add.at(dense, (np.arange(L)[:, None], q.tokens), q.law)
    return dense


def _theory(live: Live, q: Proposal) -> float:
    """1 - TV(pi, q)."""
    pi = np.zeros((L, VOCAB_ROWS))
    pi[live.place] = live.pi
    return 1.0 - float(np.abs(pi - _dense(q)).sum()) / 2


def _acceptances(live: Live, q: Proposal) -> Floats:
    """Probability that each pair is accepted, [L, V]; 0 where it is never proposed."""
    found = np.zeros((L, VOCAB_ROWS))
    for position, token in np.argwhere(_dense(q) > 0.0):
        drawn = q._replace(position=int(position), token=int(token))
        found[position, token] = acceptance(live.pi, live.place, drawn)
    return found


def _drawn(q: Proposal, num: int) -> list[Proposal]:
    """Proposals from the law."""
    dense = _dense(q).ravel()
    pairs = np.random.default_rng(0).choice(dense.size, num, p=dense / dense.sum())
    return [q._replace(position=int(n // VOCAB_ROWS), token=int(n % VOCAB_ROWS)) for n in pairs]


def _step(live: Live, proposals: list[Proposal], *, key: int, step: int = STEP) -> Step:
    return rejection(
        live.fresh,
        live.phi,
        first=0,
        states=[0],
        proposals=proposals,
        start=0,
        step=step,
        key=key,
        rule=live.rule,
    )(0)


def _commits(live: Live, proposals: list[Proposal], *, step: int = STEP) -> list[Commit]:
    """One execution per key."""
    steps = [_step(live, [p], key=key, step=step) for key, p in enumerate(proposals)]
    return [step.move[0] for step in steps]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_probability_of_acceptance_is_one_minus_the_total_variation(
    lives: list[Live], shape: str
) -> None:
    for live in lives:
        q = _shapes(live)[shape]
        accepted = float((_dense(q) * _acceptances(live, q)).sum())
        assert accepted == pytest.approx(_theory(live, q), abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_accepted_and_what_replaces_the_rest_add_up_to_the_targets_law(
    lives: list[Live], shape: str
) -> None:
    for live in lives:
        q = _shapes(live)[shape]
        accepted = (_dense(q) * _acceptances(live, q))[live.place]
        rest = residual(live.pi, live.place, q)
        assert rest.sum() == pytest.approx(1.0)
        emitted = accepted + (1.0 - accepted.sum()) * rest
        assert np.allclose(emitted, live.pi, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", ["right place", "flattened"])
def test_a_million_tests_accept_as_often_as_theory_says(lives: list[Live], shape: str) -> None:
    num = 1_000_000  # of a standard error of at most 0.0005
    live = lives[0]
    q = _shapes(live)[shape]
    places = torch.from_numpy(_dense(q).ravel())
    generator = torch.Generator().manual_seed(0)
    pairs = torch.multinomial(places, num, replacement=True, generator=generator)
    positions, tokens = pairs // VOCAB_ROWS, pairs % VOCAB_ROWS
    u = uniform(torch.arange(num), positions, tokens[:, None], step=STEP, stream=ACCEPTANCE)
    limits = torch.from_numpy(_acceptances(live, q).ravel())[pairs]
    assert 0.05 < _theory(live, q) < 0.95
    assert abs(float((u[:, 0] < limits).double().mean()) - _theory(live, q)) < 0.002


def _accepted(commits: list[Commit], proposals: list[Proposal]) -> list[bool]:
    pairs = zip(commits, proposals, strict=True)
    return [(c.position, c.token) == (p.position, p.token) for c, p in pairs]


@pytest.mark.parametrize("shape", SHAPES)
def test_executions_accept_as_often_and_emit_the_targets_law(lives: list[Live], shape: str) -> None:
    num, live = 300, lives[1]
    q = _shapes(live)[shape]
    proposals = _links(live, list(range(num))) if shape == "the chain's" else _drawn(q, num)
    commits = _commits(live, proposals)
    theory = _theory(live, q)
    measured = sum(_accepted(commits, proposals)) / num
    assert abs(measured - theory) <= 4 * (theory * (1 - theory) / num) ** 0.5
    assert {c.position for c in commits} == {live.place}
    assert p_value([c.token for c in commits], dict(enumerate(live.pi.tolist()))) > 0.001


def test_an_execution_is_one_test_against_the_probability_of_acceptance(lives: list[Live]) -> None:
    """So that a million tests say what a million executions would."""
    num, live = 300, lives[0]
    proposals = _drawn(_shapes(live)["flattened"], num)
    tokens = torch.tensor([[p.token] for p in proposals])
    places = torch.full((num,), live.place)
    u = uniform(torch.arange(num), places, tokens, step=STEP, stream=ACCEPTANCE)[:, 0].tolist()
    tests = zip(u, proposals, strict=True)
    expected = [value < acceptance(live.pi, live.place, p) for value, p in tests]
    assert _accepted(_commits(live, proposals), proposals) == expected
    assert True in expected
    assert False in expected


def test_a_commit_says_the_probability_of_its_own_token(lives: list[Live]) -> None:
    live = lives[0]
    logs = live.fresh.logits[live.fresh.row_of[0, live.place].view(1)][0].double().log_softmax(-1)
    commits = _commits(live, _drawn(_shapes(live)["flattened"], 20))
    assert len({c.token for c in commits}) > 1
    for commit in commits:
        assert commit.log_probability == pytest.approx(float(logs[commit.token]), abs=1e-4)


def test_behind_the_chain_the_target_draws_for_itself(lives: list[Live]) -> None:
    live = lives[0]
    assert _step(live, [], key=KEY) == Step(live.phi.move(0))


def test_tests_and_residual_draws_carry_the_step(lives: list[Live]) -> None:
    live = lives[0]
    proposals = _drawn(_shapes(live)["flattened"], 40)
    flags = [_accepted(_commits(live, proposals, step=step), proposals) for step in (2, 2, 3)]
    assert flags[0] == flags[1] != flags[2]
    proposals = _drawn(_shapes(live)["wrong place"], 40)  # residual draws alone
    draws = [_commits(live, proposals, step=step) for step in (2, 2, 3)]
    assert draws[0] == draws[1] != draws[2]


def test_residual_draws_have_a_stream_of_their_own(lives: list[Live]) -> None:
    """Where nothing can be accepted the residual is the target's law, and yet the draws differ."""
    live, num = lives[0], 40
    row = live.fresh.row_of[0, live.place].expand(num)
    commits = draw(
        live.fresh.logits[row],
        keys=torch.arange(num),
        positions=torch.full((num,), live.place),
        rule=live.rule,
    )
    residuals = _commits(live, _drawn(_shapes(live)["wrong place"], num))
    assert [c.token for c in residuals] != commits.tolist()


def test_the_threshold_rule_is_refused(lives: list[Live]) -> None:
    live = lives[0]._replace(rule=Rule(name="threshold", tau=0.5, temperature=1.0))
    with pytest.raises(ValueError, match="strict rule only"):
        _step(live, [], key=KEY)
