"""The free chain: in which order, how deep, and from which law."""

import numpy as np
import pytest
import torch

from spot.drafters.base import DraftRequest, Drafts
from spot.drafters.chain import SSD_DEPTH, ChainDrafter
from spot.transition import Rule, draw, law
from tests.spot.chi_square import p_value
from tests.spot.drafting import MASK_ID, START, peaked, request_for

BEST = [0.5, 0.9, 0.7, 0.9, 0.6, 0.8]  # of positions 0 to 5, two of them tied
ORDER = [1, 3, 5, 2, 4, 0]
SAMPLED = Rule(temperature=1.5, top_p=0.9)


def _propose(request: DraftRequest, *, rule: Rule | None = None, **options: bool | int) -> Drafts:
    sampled, depth = bool(options.get("sampled")), int(options.get("depth", 100))
    drafter = ChainDrafter(rule=rule or Rule(), mask_id=MASK_ID, sampled=sampled, depth=depth)
    return drafter.propose([request])[0]


def _filled(drafts: Drafts, root: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[int]:
    """The position that each state fills beyond the one before it."""
    before = [root, *drafts.states[:-1]]
    changed = [np.flatnonzero(a != b) for a, b in zip(before, drafts.states, strict=True)]
    assert all(len(places) == 1 for places in changed)
    return [int(places[0]) for places in changed]


def test_links_go_by_stale_confidence_and_ties_to_the_lowest_position() -> None:
    request = request_for(peaked(BEST, vocab_size=9), full_states=True)
    drafts = _propose(request)
    assert _filled(drafts, request.root) == ORDER
    assert drafts.states[-1].tolist() == [2 + p for p in range(len(BEST))]
    assert drafts.depths.tolist() == [1, 2, 3, 4, 5, 6]


def test_committed_positions_are_skipped_and_left_alone() -> None:
    request = request_for(peaked(BEST, vocab_size=9), committed=(1, 2), full_states=True)
    drafts = _propose(request)
    assert _filled(drafts, request.root) == [3, 5, 4, 0]


@pytest.mark.parametrize(
    ("budget", "depth", "full_states", "num"),
    [(2, 100, False, 2), (100, 3, False, 3), (100, 100, False, 5), (100, 100, True, 6)],
)
def test_budget_depth_and_the_use_of_full_states_end_a_chain(
    budget: int, depth: int, full_states: bool, num: int
) -> None:
    request = request_for(peaked(BEST, vocab_size=9), budget=budget, full_states=full_states)
    assert len(_propose(request, depth=depth).states) == num


def test_a_chain_is_four_deep_unless_told_otherwise() -> None:
    request = request_for(peaked(BEST, vocab_size=9))
    drafts = ChainDrafter(rule=Rule(), mask_id=MASK_ID).propose([request])[0]
    assert len(drafts.states) == SSD_DEPTH == 4


def test_masses_are_products_of_stale_probabilities() -> None:
    request = request_for(peaked(BEST, vocab_size=9), full_states=True)
    expected = np.cumprod([BEST[p] for p in ORDER])
    assert np.allclose(_propose(request).masses, expected, rtol=5e-3)


def test_a_block_with_one_mask_left_has_nothing_to_draft_without_full_states() -> None:
    request = request_for(peaked(BEST, vocab_size=9), committed=(0, 1, 2, 3, 4))
    assert len(_propose(request).states) == 0


def test_a_guessed_chain_holds_coupled_draws() -> None:
    logits, rule = peaked(BEST, vocab_size=9), Rule(temperature=1.5)
    places = torch.arange(len(BEST))
    for key in range(10):
        drawn = draw(logits, keys=torch.full((6,), key), positions=START + places, rule=rule)
        drafts = _propose(request_for(logits, key=key, full_states=True), rule=rule)
        assert drafts.states[-1].tolist() == drawn.tolist()
        assert drafts.proposals == ()


def test_proposals_say_where_what_and_from_which_law() -> None:
    logits = 2 * torch.randn(6, 9, generator=torch.Generator().manual_seed(1))
    request = request_for(logits, full_states=True)
    drafts = _propose(request, rule=SAMPLED, sampled=True)
    assert [p.position for p in drafts.proposals] == _filled(drafts, request.root)
    for proposal, state in zip(drafts.proposals, drafts.states, strict=True):
        assert state[proposal.position] == proposal.token
        assert proposal.law.sum() == pytest.approx(1.0)
        assert np.flatnonzero(proposal.law.sum(1)).tolist() == [proposal.position]
        dense = np.zeros(9)
        np.add.at(dense, proposal.tokens[proposal.position], proposal.law[proposal.position])
        place = slice(proposal.position, proposal.position + 1)
        assert np.allclose(dense, law(logits[place], SAMPLED)[0], atol=2e-3)


def test_draws_follow_the_law_that_the_proposal_names() -> None:
    logits, rule = peaked(BEST, vocab_size=9), Rule(temperature=2.0)
    drafter = ChainDrafter(rule=rule, mask_id=MASK_ID, sampled=True, depth=2)
    found = drafter.propose([request_for(logits, key=key) for key in range(500)])
    for link in range(2):
        proposals = [drafts.proposals[link] for drafts in found]
        named: dict[int, float] = {}
        position = proposals[0].position
        pairs = zip(proposals[0].tokens[position], proposals[0].law[position], strict=True)
        for token, mass in pairs:
            named[int(token)] = named.get(int(token), 0.0) + float(mass)
        assert p_value([p.token for p in proposals], named) > 0.001


def test_draws_have_a_stream_of_their_own_and_carry_the_step() -> None:
    flat, rule = torch.zeros(6, 9), Rule(temperature=1.0)

    def tokens(key: int, *, step: int, sampled: bool = True) -> list[int]:
        request = request_for(flat, key=key, step=step, full_states=True)
        return [int(t) for t in _propose(request, rule=rule, sampled=sampled).states[-1]]

    keys = range(4)
    assert [tokens(k, step=2) for k in keys] == [tokens(k, step=2) for k in keys]
    assert all(tokens(k, step=2) != tokens(k, step=3) for k in keys)
    assert all(tokens(k, step=0) != tokens(k, step=0, sampled=False) for k in keys)
    # the second link from step 2 is drawn as the first from step 3 would be
    second = _propose(request_for(flat, key=1, step=2), rule=rule, sampled=True).proposals[1]
    after = request_for(flat, key=1, step=3, committed=(0,))
    assert _propose(after, rule=rule, sampled=True).proposals[0].token == second.token


def test_requests_of_one_call_do_not_disturb_each_other() -> None:
    requests = [
        request_for(peaked(BEST[seed:], vocab_size=9), key=seed, committed=(seed,), budget=3)
        for seed in (0, 0)
    ] + [request_for(peaked(BEST, vocab_size=9), key=9, budget=1)]
    drafter = ChainDrafter(rule=SAMPLED, mask_id=MASK_ID)
    together = drafter.propose(requests)
    for request, drafts in zip(requests, together, strict=True):
        assert np.array_equal(drafts.states, drafter.propose([request])[0].states)
