"""Diagnostics of drafted rounds, on rounds that are written down."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch

from spot.drafters.base import STALE_TOP, DraftRequest, Drafts, Stale
from spot.drafters.hypotheses import Survival
from spot.drafters.order_model import OrderModel
from spot.drafters.set_model import SetModel
from spot.drafters.sets import SetCalibration, SetsDrafter
from spot.drafters.spot import SpotDrafter
from spot.limits import Ending
from spot.targets.base import State
from spot.training.diagnostics import Diagnostics
from spot.training.first_choice import (
    Positions,
    by_order_model,
    by_set_model,
    by_stale_confidence,
    first_choice,
)
from spot.training.plots import (
    PlotsMissingError,
    plot_blocks,
    plot_reliability,
    require_plots,
)
from spot.trajectory import Commit, Move
from spot.transition import Rule
from spot.verification import Walk, successor
from tests.spot.known_orders import SHAPE

MASK_ID, L = 9999, 4
ORDER = [2, 0, 3, 1]  # the surest first
GREEDY = Rule()


def _token(position: int, rank: int = 0) -> int:
    return 100 * (position + 1) + rank


def _stale() -> Stale:
    logs = np.tile(np.linspace(-0.5, -9.0, STALE_TOP), (L, 1))
    doubts = np.empty(L)
    doubts[ORDER] = np.arange(L) - 5.0
    return Stale(
        log_probs=logs.astype(np.float16),
        doubts=doubts.astype(np.float16),
        tokens=np.array([[_token(p, rank) for rank in range(STALE_TOP)] for p in range(L)]),
        masked=np.ones(L, bool),
    )


def _state(*filled: int | tuple[int, int]) -> State:
    """A state with stale best tokens, or others by rank, at some positions."""
    state = np.full(L, MASK_ID, np.int64)
    for place in filled:
        position, rank = place if isinstance(place, tuple) else (place, 0)
        state[position] = _token(position, rank)
    return state


@dataclass(frozen=True, slots=True)
class Request:
    key: int = 1
    prompt_ids: tuple[int, ...] = (5, 5, 5, 5, 5)  # the first decoded block is number 1


@dataclass(frozen=True, slots=True)
class SequenceNow:
    root: State
    stale: Stale | None = field(default_factory=_stale)
    block: int = 1
    step: int = 1
    request: Request = field(default_factory=Request)

    @property
    def start(self) -> int:
        return self.block * L


@dataclass(frozen=True, slots=True)
class Entry:
    sequence: SequenceNow
    drafts: Drafts
    states: list[State]
    stored: dict[bytes, int] = field(default_factory=dict)


def _entry(
    *drafts: tuple[State, float], root: State | None = None, block: int = 1, opening: bool = False
) -> Entry:
    root = _state() if root is None else root
    states = [state for state, _ in drafts]
    return Entry(
        sequence=SequenceNow(root, None if opening else _stale(), block),
        drafts=Drafts(
            np.array(states).reshape(-1, L),
            np.array([mass for _, mass in drafts] + [0.9], np.float32),  # one was not taken
            np.ones(len(drafts), np.int64),
        ),
        states=[root, *(s if (s == MASK_ID).any() else _state() for s in states)],
    )


def _move(*places: int | tuple[int, int], block: int = 1) -> Move:
    pairs = [p if isinstance(p, tuple) else (p, 0) for p in places]
    return tuple(Commit(block * L + p, _token(p, rank), 0.0, 0.0) for p, rank in pairs)


def _walk(entry: Entry, *moves: Move, end: Ending | None = None) -> Walk:
    """The walk that makes these moves; all states between them were evaluated."""
    names = [state.tobytes() for state in entry.states]
    path, state = [0], entry.states[0]
    start = entry.sequence.block * L
    for move in moves[:-1]:
        state = successor(state, move, start=start)
        path.append(names.index(state.tobytes()))
    return Walk(successor(state, moves[-1], start=start), path[-1], list(moves), path, end)


def _diagnostics() -> Diagnostics:
    return Diagnostics(
        first_choice(by_stale_confidence(GREEDY), rule=GREEDY, mask_id=MASK_ID), MASK_ID
    )


def _seen(entry: Entry, *moves: Move, end: Ending | None = None) -> Diagnostics:
    found = _diagnostics()
    found.walked(entry, _walk(entry, *moves, end=end), _stale())
    return found


FIRST = (_state(2), 0.8)


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (_move(3), "position_miss"),
        (_move((0, 1)), "token_miss"),
        (_move((3, 1)), "position_miss"),
        (_move(0), "out_of_nodes"),
        (_move(0, 3), "position_miss"),  # a set of which only a part was meant
    ],
)
def test_the_end_of_a_walk_is_blamed_on_what_was_ranked_first(last: Move, reason: str) -> None:
    found = _seen(_entry(FIRST), _move(2), last).report()["first_rejections"]
    assert found[reason] == found["rejections"] == 1
    assert found[f"{reason}_share"] == 1.0


def test_a_full_block_rejects_nothing() -> None:
    entry = _entry((_state(2, 0, 3), 0.5), root=_state(2, 0))
    found = _seen(entry, _move(3), _move(1)).report()["first_rejections"]
    assert (found["rejections"], found["block_end"]) == (0, 1)


def test_the_last_round_of_a_sample_is_no_evidence_about_drafts() -> None:
    found = _seen(_entry(FIRST), _move(2), _move(3), end=Ending(7, "stop")).report()
    assert found["first_rejections"]["rejections"] == 0
    assert sum(row["count"] for row in found["masses"]) == 0
    assert found["blocks"][0]["accepted_per_round"] == 1.0


def test_masses_are_compared_with_acceptance_by_state() -> None:
    entry = _entry(FIRST, (_state(2, 0), 0.55), (_state(3), 0.15), (_state(2, 3), 0.12))
    rows = _seen(entry, _move(2), _move(0), _move((1, 5))).report()["masses"]
    assert {i: (row["count"], row["realised"]) for i, row in enumerate(rows) if row["count"]} == {
        1: (2, 0.0),
        5: (1, 1.0),
        8: (1, 1.0),
    }
    assert rows[1]["predicted"] == pytest.approx(0.135)


def test_a_full_draft_counts_if_it_was_evaluated() -> None:
    full, root = _state(0, 1, 2, 3), _state(0, 2, 3)
    for stored, count, realised in (({full.tobytes(): 5}, 1, 1.0), ({}, 0, None)):
        entry = _entry((full, 0.35), root=root)
        entry.stored.update(stored)
        rows = _seen(entry, _move(1)).report()["masses"]
        assert (rows[3]["count"], rows[3]["realised"]) == (count, realised)
        assert sum(row["count"] for row in rows) == count


def test_a_full_draft_that_was_crossed_is_accepted() -> None:
    full = _state(0, 1, 2, 3)
    entry = _entry((full, 0.35), root=_state(0, 2, 3))
    entry.stored[full.tobytes()] = 5
    crossing = Walk(_state(0), 1, [_move(1), _move(0, block=2)], [0, 1], None, full, 1)
    found = _diagnostics()
    found.walked(entry, crossing, _stale())
    report = found.report()
    assert report["masses"][3]["realised"] == 1.0
    assert report["first_rejections"]["block_end"] == 1


def test_accepted_drafts_are_counted_by_block_from_the_first_that_is_decoded() -> None:
    found = _diagnostics()
    for block, drafted in ((1, True), (1, False), (2, True)):
        entry = _entry(*([FIRST] if drafted else []), block=block)
        moves = [_move(2, block=block), _move(3, block=block)][: 1 + drafted]
        found.walked(entry, _walk(entry, *moves), _stale())
    one, two = found.report()["blocks"]
    assert (one["block"], one["rounds"], one["drafted_rounds"]) == (0, 2, 1)
    assert (one["accepted_per_round"], one["accepted_per_drafted_round"]) == (0.5, 1.0)
    assert (two["block"], two["accepted_per_round"]) == (1, 1.0)


@pytest.mark.parametrize(
    ("root", "move", "leads", "right"),
    [
        (_state(), _move(2), 1.0, 1.0),
        (_state(), _move(0), 0.0, 1.0),
        (_state(), _move((2, 1)), 1.0, 0.0),
        (_state(2), _move(0), 1.0, 1.0),  # the surest of what remains
        (_state(), _move(2, (3, 1)), 1.0, 0.5),
    ],
)
def test_stale_order_and_tokens_are_compared_with_the_next_transition(
    root: State, move: Move, leads: float, right: float
) -> None:
    (row,) = _seen(_entry(root=root), move).report()["blocks"]
    assert (row["stale_leader_commits_next"], row["stale_token_right"]) == (leads, right)


def test_an_opening_tells_nothing_about_stale_order() -> None:
    (row,) = _seen(_entry(opening=True), _move(2)).report()["blocks"]
    assert (row["rounds"], row["stale_leader_commits_next"]) == (1, None)


def test_the_share_of_ties_is_that_of_all_transitions() -> None:
    found = _diagnostics()
    assert found.report()["tied_share"] is None
    found.finished(transitions=30, tied=1)
    found.finished(transitions=10, tied=1)
    assert found.report()["tied_share"] == 0.05


def _request(budget: int) -> DraftRequest:
    return DraftRequest(
        root=_state(1), stale=_stale(), start=L, key=1, budget=budget, full_states=True
    )


def _order() -> OrderModel:
    torch.manual_seed(0)
    return OrderModel(SHAPE).eval()


def _sets() -> SetModel:
    torch.manual_seed(0)
    return SetModel(SHAPE).eval()


THRESHOLD, CERTAIN = Rule(name="threshold", tau=0.9), Survival(50.0, 0.0)


@pytest.mark.parametrize(
    ("positions", "drafter"),
    [
        (
            lambda: by_order_model(_order()),
            lambda: SpotDrafter(_order(), rule=GREEDY, mask_id=MASK_ID),
        ),
        (
            lambda: by_set_model(_sets(), tau=0.9, calibration=SetCalibration()),
            lambda: SetsDrafter(_sets(), rule=THRESHOLD, mask_id=MASK_ID, survival=CERTAIN),
        ),
    ],
    ids=["order", "sets"],
)
def test_the_first_choice_behind_the_root_is_the_drafters_first_draft(
    positions: Callable[[], Positions], drafter: Callable[[], SpotDrafter | SetsDrafter]
) -> None:
    torch.set_num_threads(1)
    choose = first_choice(positions(), rule=GREEDY, mask_id=MASK_ID)
    (drafts,) = drafter().propose([_request(budget=1)])
    assert np.array_equal(choose(_request(0), _state(1), 0), drafts.states[0])


def test_what_a_path_has_taken_is_never_chosen_again() -> None:
    for positions in (
        by_order_model(_order()),
        by_set_model(_sets(), tau=0.9, calibration=SetCalibration(bias=100.0)),
        by_stale_confidence(THRESHOLD),
    ):
        choose = first_choice(positions, rule=GREEDY, mask_id=MASK_ID)
        after = choose(_request(0), _state(1, (2, 7)), 1)
        assert after[2] == _token(2, 7)
        assert (after != MASK_ID).sum() > 2


def test_figures_are_written(tmp_path: Path) -> None:
    report = _seen(_entry(FIRST), _move(2), _move(3)).report()
    plot_reliability(report["masses"], tmp_path / "new" / "masses.svg", name="prefix mass")
    plot_blocks(report["blocks"], tmp_path / "blocks.svg")
    for path in (tmp_path / "new" / "masses.svg", tmp_path / "blocks.svg"):
        assert path.read_text().rstrip().endswith("</svg>")


def test_without_matplotlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PlotsMissingError, match=r"pip install 'spotbatch\[plots\]'"):
        require_plots()
