"""Drafted decoding against draft-free decoding, for everything that can be combined."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spot.decoder import ReferenceDecoder
from spot.drafters.base import Drafter, DraftRequest, Drafts
from spot.limits import Limits
from spot.targets.base import Unit
from spot.transition import Rule
from tests.spot.enumeration import Enumeration
from tests.spot.hostile import Hostile
from tests.spot.lineup import (
    MODES,
    NAMES,
    Mode,
    Moves,
    Outcome,
    decode_all,
    decode_one,
    make_drafter,
    prompts,
)
from tests.spot.toy import (
    LENGTH,
    MASK_ID,
    NUM_TOKENS,
    VOCAB_ROWS,
    Table,
    ToyTarget,
    flipping_table,
    mixed_table,
    near_table,
    random_table,
    tied_table,
)

RULES = (
    *(Rule(temperature=temperature) for temperature in (0.0, 0.7, 1.0, 1.5)),
    *(Rule(name="threshold", tau=0.5, temperature=temperature) for temperature in (0.0, 1.5)),
    *(Rule(name="threshold", tau=0.7, temperature=temperature) for temperature in (0.7, 1.0)),
)
BUDGETS = (1, 3, 8)
TARGET = ToyTarget(mixed_table)
SAMPLES = prompts(5, keys=2, limits=Limits(prompt_tokens=5, max_tokens=8))


@cache
def _moves(rule: Rule) -> Moves:
    decoder = ReferenceDecoder(TARGET, rule=rule)
    return {s.key: decoder.decode(s).trajectory.moves for s in SAMPLES}


@cache
def _free(rule: Rule) -> list[Outcome]:
    """Draft-free decoding, the definition."""
    return [decode_one(TARGET, sample, rule=rule) for sample in SAMPLES]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", NAMES)
def test_the_engine_decodes_as_if_nothing_were_drafted(name: str, budget: int) -> None:
    for turn, rule in enumerate(RULES):
        drafter = make_drafter(name, rule=rule, moves=_moves(rule))
        mode = MODES[(turn + BUDGETS.index(budget)) % len(MODES)]
        found = decode_all(TARGET, SAMPLES, rule=rule, drafter=drafter, budget=budget, mode=mode)
        assert found == _free(rule), (rule, mode)


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_decodes_as_if_nothing_were_drafted(name: str) -> None:
    for turn, rule in enumerate(RULES):
        drafter = make_drafter(name, rule=rule, moves=_moves(rule))
        row, budget = 5 * turn % len(SAMPLES), BUDGETS[turn % len(BUDGETS)]
        found = decode_one(TARGET, SAMPLES[row], rule=rule, drafter=drafter, budget=budget)
        assert found == _free(rule)[row], rule


@pytest.mark.parametrize("rule", RULES)
def test_draft_free_decoding_is_what_its_definition_says(rule: Rule) -> None:
    for sample in SAMPLES:
        defined = Enumeration(
            mixed_table, prompt=sample.prompt_ids, rule=rule, limits=sample.limits
        ).decode(sample.key)
        found = [
            tuple((commit.position, commit.token) for commit in move)
            for move in _moves(rule)[sample.key]
        ]
        assert found == list(defined)


def _confidences(table: Table, *committed: int) -> NDArray[np.float64]:
    """Probability of each position's best token, some positions holding token 0."""
    state = tuple(0 if p in committed else MASK_ID for p in range(LENGTH))
    logits = table((), state)[:, :NUM_TOKENS].astype(np.float64)
    return np.asarray(1 / np.exp(logits - logits.max(1, keepdims=True)).sum(1))


def test_the_tables_are_as_adversarial_as_they_claim() -> None:
    assert len(set(_confidences(random_table))) == LENGTH
    order, flipped = _confidences(flipping_table).argsort(), _confidences(flipping_table, 0)
    assert order.tolist() == flipped.argsort()[::-1].tolist()
    near = _confidences(near_table)
    assert 0 < np.ptp(near) < 1e-4
    assert near.min() < 0.7 < near.max()
    assert len(set(_confidences(tied_table))) == 1


def test_drafts_are_accepted_behind_every_table() -> None:
    """Otherwise the equalities above would prove little."""
    for rule in RULES:
        drafter = make_drafter("joint", rule=rule, moves=_moves(rule))
        decoder = ReferenceDecoder(TARGET, rule=rule, drafter=drafter, budget=3)
        accepted = [decoder.decode(s).trajectory.cost.accepted for s in SAMPLES[::2]]
        assert all(accepted) if rule.name == "strict" else any(accepted)


def test_the_toy_refuses_a_page_that_was_never_written_or_belongs_elsewhere() -> None:
    pages = TARGET.new_pages(3)
    state = np.arange(LENGTH)
    TARGET.hidden([Unit(state=state, start=0, pages=(), write=0)], pages)
    TARGET.hidden([Unit(state=state, start=LENGTH, pages=(0,))], pages)
    with pytest.raises(AssertionError, match="never written"):
        TARGET.hidden([Unit(state=state, start=LENGTH, pages=(1,))], pages)
    with pytest.raises(AssertionError, match="misplaced"):
        TARGET.hidden([Unit(state=state, start=2 * LENGTH, pages=(0, 0))], pages)
    with pytest.raises(AssertionError, match="another length"):
        TARGET.hidden([Unit(state=state, start=0, pages=(0,))], pages)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), rule=st.sampled_from(RULES), mode=st.sampled_from(MODES))
def test_no_drafter_can_change_an_output(seed: int, rule: Rule, mode: Mode) -> None:
    """Not with changed commits, wrong tokens, duplicates or full blocks either."""

    def hostile() -> Hostile:
        return Hostile(seed, mask_id=MASK_ID, num_tokens=VOCAB_ROWS)

    found = decode_all(TARGET, SAMPLES, rule=rule, drafter=hostile(), budget=8, mode=mode)
    assert found == _free(rule)
    row = seed % len(SAMPLES)
    alone = decode_one(TARGET, SAMPLES[row], rule=rule, drafter=hostile(), budget=8)
    assert alone == _free(rule)[row]


def test_equal_states_of_one_forward_are_evaluated_once() -> None:
    target = ToyTarget(mixed_table)
    same = [SAMPLES[0]] * 3  # three samples that never part
    rule = RULES[0]
    drafter = make_drafter("spot", rule=rule, moves={})
    alone = decode_all(target, same[:1], rule=rule, drafter=drafter, budget=3)
    expected = [len(units) for units in target.forwards]
    target.forwards.clear()
    assert decode_all(target, same, rule=rule, drafter=drafter, budget=3) == alone * 3
    assert [len(units) for units in target.forwards] == expected
    target.forwards.clear()
    decode_all(target, SAMPLES, rule=RULES[3], drafter=drafter, budget=8)  # these do part
    for units in target.forwards:
        states = [(u.pages, u.state.tobytes()) for u in units if u.write < 0]
        assert len(set(states)) == len(states)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode("drop"), [(1, 1), (3, 0), (1, 1), (3, 0)]),
        (Mode("reuse"), [(1, 1), (3, 1), (1, 0), (3, 0)]),
        (Mode("look_through"), [(1, 1), (4, 1), (3, 0)]),
        (Mode("look_through", padded=True), [(1, 1), (8, 1), (9, 0)]),
        (Mode("drop", fused_store=False), [(0, 1), (1, 0), (3, 0), (0, 1), (1, 0), (3, 0)]),
        (Mode("reuse", fused_store=False), [(0, 1), (1, 0), (3, 1), (1, 0), (3, 0)]),
    ],
)
def test_what_true_full_drafts_save(mode: Mode, expected: list[tuple[int, int]]) -> None:
    """Evaluated and stored blocks of each forward: a prompt of one block, two blocks of output."""
    rule, target = Rule(temperature=1.0), ToyTarget(random_table)
    sample = prompts(LENGTH, keys=1, limits=Limits(prompt_tokens=4, max_tokens=8))[0]
    moves = ReferenceDecoder(target, rule=rule).decode(sample).trajectory.moves
    oracle = make_drafter("joint", rule=rule, moves={sample.key: moves})
    target.forwards.clear()
    decode_all(target, [sample], rule=rule, drafter=oracle, budget=8, mode=mode)
    counts = [sum(unit.write >= 0 for unit in units) for units in target.forwards]
    evaluated = [len(units) - n for units, n in zip(target.forwards, counts, strict=True)]
    assert list(zip(evaluated, counts, strict=True)) == expected


class Watching:
    """Passes requests on, and sees that each is one commit older than its root."""

    def __init__(self, drafter: Drafter) -> None:
        self._drafter, self.ages = drafter, set[int]()

    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """See ``Drafter.propose``."""
        for request in requests:
            masked = request.root == MASK_ID
            self.ages.add(int((request.stale.masked ^ masked).sum()))
            assert request.step == (~masked).sum(), "prompts end at a block here"
        return self._drafter.propose(requests)


def test_stale_conditionals_are_one_commit_old_however_many_were_accepted() -> None:
    rule = Rule(temperature=1.0)
    samples = prompts(LENGTH, keys=1, limits=Limits(prompt_tokens=4, max_tokens=8))
    decoder = ReferenceDecoder(TARGET, rule=rule)
    moves = {s.key: decoder.decode(s).trajectory.moves for s in samples}
    drafter = Watching(make_drafter("joint", rule=rule, moves=moves))
    for sample in samples:
        decode_one(TARGET, sample, rule=rule, drafter=drafter, budget=1)
    decode_all(TARGET, samples, rule=rule, drafter=drafter, budget=1)
    assert drafter.ages == {1}
