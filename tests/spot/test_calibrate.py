"""Calibration: fits, tallies, and what is counted while decoding without drafts."""

import json

import numpy as np
import pytest
import torch

from spot.drafters.base import STALE_TOP, Stale
from spot.drafters.hypotheses import MAX_MARGIN
from spot.drafters.set_model import SetModel
from spot.drafters.sets import SetCalibration
from spot.training.calibrate import (
    GRID,
    Logistic,
    Reliability,
    Tally,
    choose_gamma,
    fit_logistic,
)
from spot.training.membership import (
    fit_calibration,
    likeliest,
    membership_tally,
    set_examples,
    set_law,
)
from spot.training.survival import SurvivalRecorder
from spot.trajectory import Commit, Move
from spot.transition import Rule
from tests.spot.known_orders import NUM_SAMPLES, SHAPE, pairs_right_to_left

SCORES = np.linspace(-4.0, 4.0, 33)


@pytest.mark.parametrize("law", [Logistic(0.7, 1.5), Logistic(-2.0, 0.25), Logistic(0.5, -1.0)])
def test_a_logistic_law_is_found_again(law: Logistic) -> None:
    found = fit_logistic(SCORES, np.full(33, 1e6), 1e6 * law(SCORES))
    assert found == pytest.approx(law, abs=1e-5)


@pytest.mark.parametrize("cut", [-10.0, 0.1, 10.0])
def test_observations_that_one_score_separates_give_a_finite_law(cut: float) -> None:
    hits = np.where(cut < SCORES, 100.0, 0.0)
    found = fit_logistic(SCORES, np.full(33, 100.0), hits)
    assert np.isfinite(found).all()
    assert np.abs(found(SCORES) - hits / 100.0).mean() < 0.01


def test_a_fit_is_likelier_than_its_neighbours() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 50, 33).astype(float)
    hits = rng.binomial(counts.astype(int), 0.5).astype(float)

    def likelihood(law: Logistic) -> float:
        p = law(SCORES)
        return float((hits * np.log(p) + (counts - hits) * np.log1p(-p)).sum())

    found = fit_logistic(SCORES, counts, hits)
    for step in ((0.02, 0.0), (-0.02, 0.0), (0.0, 0.02), (0.0, -0.02)):
        other = Logistic(found.offset + step[0], found.slope + step[1])
        assert likelihood(found) > likelihood(other)


def test_nothing_can_be_fitted_to_nothing() -> None:
    with pytest.raises(ValueError, match="nothing was observed"):
        Tally().fit()


def test_a_tally_counts_by_score_and_survives_json() -> None:
    tally = Tally()
    tally.add([0.5, 0.5, -1.0], [True, False, True])
    tally.add(np.array([[0.5 + 0.4 / GRID]], np.float32), [[True]])  # rounds to the same score
    again = Tally.from_json(json.loads(json.dumps(tally.to_json())))
    for found in (tally, again):
        assert [a.tolist() for a in found.arrays()] == [[-1.0, 0.5], [1, 3], [1, 2]]
        assert (found.total, found.share) == (4, 0.75)


def test_merged_tallies_are_what_one_tally_would_have_counted() -> None:
    rng = np.random.default_rng(1)
    scores, hits = rng.normal(size=200), rng.uniform(size=200) < 0.5
    parts, whole = [Tally(), Tally()], Tally()
    whole.add(scores, hits)
    for part, half in zip(parts, (slice(90), slice(90, None)), strict=True):
        part.add(scores[half], hits[half])
    parts[0].merge(parts[1])
    assert parts[0].to_json() == whole.to_json()


def test_reliability_compares_means_in_ten_bins() -> None:
    found = Reliability()
    found.add([0.05, 0.93, 1.0], hits=[0, 1, 1])
    found.add([0.97], hits=[1], counts=2)
    rows = found.rows()
    assert [row["count"] for row in rows] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 4]
    assert rows[9]["predicted"] == pytest.approx((0.93 + 1.0 + 2 * 0.97) / 4)
    assert rows[9]["realised"] == 0.75
    assert rows[1]["predicted"] is None
    assert found.error() == pytest.approx((0.05 + (0.93 + 1.0 + 1.94 - 3)) / 5)


def test_a_law_that_made_the_observations_has_no_calibration_error() -> None:
    law = Logistic(0.3, 1.2)
    tally = Tally({int(s * GRID): [10**6, int(1e6 * law(s))] for s in SCORES})
    assert tally.reliability(law).error() < 1e-5
    assert tally.reliability(Logistic(2.0, 1.2)).error() > 0.1


@pytest.mark.parametrize(
    ("ratios", "chosen"),
    [
        ({0.0: 1.0, 0.02: 1.5, 0.05: 2.0, 0.1: 1.2}, 0.05),
        ({0.0: 1.0, 0.02: 1.95, 0.05: 2.0}, 0.02),  # within 3%
        ({0.0: 1.0, 0.02: 1.93, 0.05: 2.0}, 0.05),  # not within 3%
        ({0.2: 2.0, 0.1: 2.0, 0.0: 1.99}, 0.0),
    ],
)
def test_the_smallest_floor_as_good_as_the_best_is_chosen(
    ratios: dict[float, float], chosen: float
) -> None:
    assert choose_gamma(ratios) == chosen


MASK_ID, LENGTH, START = 9999, 6, 12
FIRST = 1000  # rank j at position p is token FIRST * (p + 1) + j


def _stale(margin: float = 2.0) -> Stale:
    """Every position's best token is ``margin`` nats ahead of the second."""
    logs = np.concatenate([[-0.125], -0.125 - margin - np.arange(STALE_TOP - 1)])
    return Stale(
        log_probs=np.tile(logs, (LENGTH, 1)).astype(np.float16),
        doubts=np.zeros(LENGTH, np.float16),
        tokens=FIRST * (np.arange(LENGTH)[:, None] + 1) + np.arange(STALE_TOP),
        masked=np.ones(LENGTH, bool),
    )


def _move(*commits: tuple[int, int], start: int = START) -> Move:
    """Commits of (position in the block, rank of the token)."""
    return tuple(Commit(start + p, FIRST * (p + 1) + rank, 0.0, 0.0) for p, rank in commits)


def _root(*committed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    root = np.full(LENGTH, MASK_ID, np.int64)
    root[list(committed)] = 1
    return root


def _recorder(*, lookahead: int = 24, rule: Rule | None = None) -> SurvivalRecorder:
    return SurvivalRecorder(rule=rule or Rule(), mask_id=MASK_ID, lookahead=lookahead)


def _observe(
    recorder: SurvivalRecorder,
    moves: list[Move],
    *,
    start: int = START,
    key: int = 7,
    margin: float = 2.0,
) -> None:
    """A block from its opening, which has no stale conditionals."""
    done: list[int] = []
    for number, move in enumerate(moves):
        stale = _stale(margin) if number else None
        recorder.observe(key, start=start, root=_root(*done), stale=stale, move=move)
        done += [c.position - start for c in move]


def test_every_later_commit_of_a_block_is_compared_at_every_root() -> None:
    recorder = _recorder()
    _observe(recorder, [_move((0, 0)), _move((3, 0)), _move((1, 4)), _move((5, 0))])
    tally = recorder.finish()
    # three commits behind the first root with stale conditionals, then two, then one
    assert [a.tolist() for a in tally.arrays()] == [[2.0], [6], [4]]


def test_commits_beyond_the_lookahead_do_not_count() -> None:
    recorder = _recorder(lookahead=2)
    _observe(recorder, [_move((0, 0)), _move((3, 0)), _move((1, 4)), _move((5, 0))])
    assert [a.tolist() for a in recorder.finish().arrays()] == [[2.0], [5], [3]]


def test_a_set_of_commits_is_one_transition() -> None:
    recorder = _recorder(lookahead=2)
    _observe(recorder, [_move((0, 0)), _move((3, 0), (1, 4)), _move((5, 0))])
    assert recorder.finish().to_json() == {str(2 * GRID): [4, 3]}


def test_margins_are_cut() -> None:
    recorder = _recorder()
    _observe(recorder, [_move((0, 0)), _move((1, 0))], margin=55.0)
    assert recorder.finish().to_json() == {str(int(MAX_MARGIN) * GRID): [1, 1]}


def test_blocks_and_samples_are_kept_apart() -> None:
    recorder = _recorder()
    one, two = [_move((0, 0)), _move((3, 0))], [_move((0, 0), start=18), _move((3, 1), start=18)]
    for moves, start in ((one, START), (two, 18)):
        _observe(recorder, moves, start=start)
        _observe(recorder, moves, start=start, key=8)
    assert recorder.finish().to_json() == {str(2 * GRID): [4, 2]}
    assert recorder.finish().total == 0


def test_above_temperature_zero_the_coupled_draw_is_the_hypothesis() -> None:
    rule, keys = Rule(temperature=1.0), range(60)
    recorder = _recorder(rule=rule)
    for key in keys:
        _observe(recorder, [_move((0, 0)), _move((1, 0))], key=key, margin=1.0)
    tally = recorder.finish()
    mean = np.exp(_stale(1.0).log_probs[0].astype(float))
    # the best token is drawn as often as its probability says
    assert tally.share == pytest.approx(mean[0] / mean.sum(), abs=0.15)
    assert len(tally.cells) > 30


TAU = 0.9


@pytest.fixture(scope="module")
def model() -> SetModel:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return SetModel(SHAPE).eval().requires_grad_(False)


def test_set_examples_tell_who_passes_and_who_commits() -> None:
    found = pairs_right_to_left()
    examples = set_examples(found, found.roots(), depth=0, tau=TAU)
    first, last = (np.flatnonzero(examples.commits[i]).tolist() for i in (0, 1))
    assert (first, last) == ([2, 3], [0, 1])
    assert (examples.passes == examples.commits).all()


def test_where_nothing_passes_the_leader_commits() -> None:
    found = pairs_right_to_left()
    examples = set_examples(found, found.roots(), depth=0, tau=0.9999)
    assert not examples.passes.any()
    assert (examples.commits.sum(1) == 1).all()


def test_memberships_are_counted_at_every_open_position(model: SetModel) -> None:
    tally = membership_tally(model, pairs_right_to_left(), tau=TAU)
    # a block has two roots: 4 open positions at the first, then 2; and 2 at depth 1 behind it
    assert tally.total == NUM_SAMPLES * (4 + 2 + 2)
    assert tally.share == pytest.approx(6 / 8)


def test_a_likeliest_set_is_what_passes_or_one_position(model: SetModel) -> None:
    found = pairs_right_to_left()
    examples = set_examples(found, found.roots(), depth=0, tau=TAU)
    law = set_law(model, examples.given, tau=TAU)
    sure, none = (likeliest(law, SetCalibration(bias=bias)) for bias in (100.0, -100.0))
    assert (sure == examples.open).all()
    assert (none.sum(1) == 1).all()


def test_the_calibration_of_logits_is_found_again() -> None:
    law = Logistic(-0.5, 0.4)
    tally = Tally({int(s * GRID): [10**6, int(1e6 * law(s))] for s in SCORES})
    found = fit_calibration(tally)
    assert (found.temperature, found.bias) == pytest.approx((2.5, -0.5), abs=1e-4)


def test_logits_that_say_the_opposite_are_refused() -> None:
    law = Logistic(0.0, -1.0)
    tally = Tally({int(s * GRID): [1000, int(1e3 * law(s))] for s in SCORES})
    with pytest.raises(ValueError, match="do not rise"):
        fit_calibration(tally)
