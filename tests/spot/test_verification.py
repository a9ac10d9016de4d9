"""Walks over drafted states, and what each verifier emits."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from spot.limits import Ending, Limits
from spot.targets import logit_rows
from spot.targets.base import Conditionals, State
from spot.targets.logit_rows import rows_at_once
from spot.trajectory import Commit, Move
from spot.transition import Rule, draw
from spot.verification import (
    Step,
    Transitions,
    Walk,
    coupled,
    greedy,
    signed,
    transitions,
    walk,
)
from tests.spot.drafting import all_of, conditionals_of
from tests.spot.toy import MASK_ID

START = 40
NO_LIMITS = Limits(prompt_tokens=0, max_tokens=1000)


def _state(text: str) -> State:
    """A state of digits, with _ for a mask."""
    return np.array([MASK_ID if c == "_" else int(c) for c in text], np.int64)


def _move(*commits: tuple[int, int], start: int = START) -> Move:
    return tuple(Commit(start + place, token, -0.5, -0.5) for place, token in commits)


def _walk(
    states: list[str],
    steps: Sequence[Step],
    *,
    openings: dict[str, int] | None = None,
    limits: Limits = NO_LIMITS,
) -> Walk:
    return walk(
        [_state(text) for text in states],
        lambda index: steps[index],
        start=START,
        mask_id=MASK_ID,
        limits=limits,
        openings={_state(text).tobytes(): at for text, at in (openings or {}).items()},
    )


def test_a_walk_goes_by_state_and_so_through_merged_drafts() -> None:
    """1_3 is reached through 1__, whichever of its parents drafted it."""
    states = ["___", "__3", "1_3", "1__"]
    steps = [Step(_move((0, 1))), Step(_move((1, 9))), Step(_move((1, 2))), Step(_move((2, 3)))]
    made = _walk(states, steps)
    assert (made.path, made.last, made.accepted) == ([0, 3, 2], 2, 2)
    assert made.root.tolist() == [1, 2, 3]
    assert made.moves == [_move((0, 1)), _move((2, 3)), _move((1, 2))]


def test_a_walk_ends_at_the_first_state_that_was_not_evaluated() -> None:
    made = _walk(["___", "2__"], [Step(_move((0, 1))), Step(_move((1, 1)))])
    assert (made.path, made.last, made.accepted, made.end) == ([0], 0, 0, None)
    assert made.root.tolist() == [1, MASK_ID, MASK_ID]


def test_a_subset_or_a_superset_of_a_transition_is_not_accepted() -> None:
    both = Step(_move((0, 1), (2, 3)))
    assert _walk(["____", "1___", "123_"], [both] * 3).accepted == 0
    assert _walk(["____", "1___", "123_", "1_3_"], [both] * 3 + [Step(_move((1, 1)))]).accepted == 1


def test_duplicates_of_a_state_are_one() -> None:
    steps = [Step(_move((0, 1))), Step(_move((1, 2))), Step(_move((1, 3)))]
    assert _walk(["___", "1__", "1__"], steps).path == [0, 1]


def test_a_walk_stops_where_the_sample_ends_whatever_was_evaluated() -> None:
    limits = Limits(prompt_tokens=START, max_tokens=1)
    steps = [Step(_move((0, 1))), Step(_move((1, 2)))]
    made = _walk(["___", "1__"], steps, limits=limits)
    assert (made.path, made.end) == ([0], Ending(START + 1, "length"))


def test_a_walk_passes_through_a_full_block_once() -> None:
    states = ["1_", "__", "1_"]
    steps = [
        Step(_move((1, 2))),
        Step(_move((0, 1), start=START + 2)),
        Step(_move((1, 1))),
    ]
    made = _walk(states, steps, openings={"12": 1})
    assert made.path == [0, 1]
    assert made.crossed is not None
    assert made.crossed.tolist() == [1, 2]
    assert (made.moves_behind, made.accepted) == (1, 1)
    # the root is in the next block; an equal state of this block is another state
    assert made.root.tolist() == [1, MASK_ID]


def test_an_opening_is_not_mistaken_for_a_state_of_the_block() -> None:
    steps = [Step(_move((0, 1))), Step(_move((1, 9)))]
    assert _walk(["__", "1_"], steps, openings={"13": 1}).path == [0]
    assert _walk(["__", "1_"], steps).path == [0, 1]


def test_what_a_verifier_would_rather_do_holds_only_where_a_draft_does() -> None:
    rather, instead = _move((0, 1)), _move((0, 2))
    steps = [Step(rather, instead), Step(_move((1, 2)), _move((1, 3)))]
    assert _walk(["___", "2__"], steps).moves == [instead]  # the other branch is not followed
    made = _walk(["___", "1__"], steps)
    assert made.moves == [rather, _move((1, 3))]


def _conditionals(seed: int = 0) -> Conditionals:
    """Of two states of three positions; the second has its middle committed."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(5, 7, generator=generator)
    return conditionals_of(logits, row_of=[[0, 1, 2], [3, -1, 4]])


def _transitions(rule: Rule, *, states: list[int], keys: list[int]) -> Transitions:
    return transitions(
        _conditionals(),
        states=torch.tensor(states),
        starts=torch.full((len(states),), START),
        keys=torch.tensor(keys),
        steps=torch.zeros(len(states), dtype=torch.int64),
        rule=rule,
    )


def test_pairs_share_a_state_and_draw_for_themselves() -> None:
    rule, keys = Rule(name="threshold", tau=0.01, temperature=2.0), list(range(6))
    phi, found = _transitions(rule, states=[1] * 6, keys=keys), _conditionals()
    moves = [phi.move(pair) for pair in range(6)]
    assert {tuple(c.position for c in move) for move in moves} == {(START, START + 2)}
    assert len({tuple(c.token for c in move) for move in moves}) > 1
    for key, move in zip(keys, moves, strict=True):
        alone = draw(
            found.logits[torch.tensor([3, 4])],
            keys=torch.tensor([key] * 2),
            positions=torch.tensor([START, START + 2]),
            rule=rule,
        )
        assert [c.token for c in move] == alone.tolist()


def test_tokens_drawn_in_pieces_are_those_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rule, keys = Rule(name="threshold", tau=0.01, temperature=2.0), list(range(40))
    whole = _transitions(rule, states=[1] * 40, keys=keys)
    monkeypatch.setattr(logit_rows, "PIECE_BYTES", 1)  # a piece is one tile of rows
    assert len(whole.token) > 2 * rows_at_once(7)
    pieces = _transitions(rule, states=[1] * 40, keys=keys)
    for name in Transitions._fields:
        assert np.array_equal(getattr(pieces, name), getattr(whole, name))


def test_the_log_probability_of_a_commit_is_untempered_and_that_of_its_token() -> None:
    phi = _transitions(Rule(temperature=3.0), states=[0] * 9, keys=list(range(9)))
    logs = all_of(_conditionals().logits).double().log_softmax(-1)
    place = int(_conditionals().confidence[:3].argmax())
    for pair in range(9):
        (commit,) = phi.move(pair)
        assert commit.position == START + place
        assert commit.log_probability == pytest.approx(float(logs[place, commit.token]), abs=1e-5)
        assert commit.confidence == pytest.approx(float(logs[place].max()), abs=1e-5)
    assert len({phi.move(pair)[0].token for pair in range(9)}) > 1


def test_a_greedy_move_has_the_same_positions_and_the_best_tokens() -> None:
    rule = Rule(name="threshold", tau=0.01, temperature=2.0)
    phi = _transitions(rule, states=[0, 1], keys=[1, 2])
    best = _transitions(Rule(name="threshold", tau=0.01), states=[0, 1], keys=[1, 2])
    for pair in range(2):
        assert phi.greedy_move(pair) == best.move(pair)
        assert greedy(phi, 0)(pair) == Step(best.move(pair), phi.move(pair))
    assert coupled(phi, 1)(0) == Step(phi.move(1))


def test_a_key_keeps_its_64_bits_as_a_signed_integer() -> None:
    keys = [0, 2**63 - 1, 2**63, 2**64 - 1]
    assert [signed(key) for key in keys] == [0, 2**63 - 1, -(2**63), -1]
    assert torch.tensor([signed(key) for key in keys]).dtype == torch.int64
