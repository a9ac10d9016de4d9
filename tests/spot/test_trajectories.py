"""Trajectories: which states are masked where, and which examples are made of them."""

import numpy as np
import pytest
from numpy.typing import NDArray

from spot.drafters.base import STALE_TOP
from spot.training.trajectories import (
    NEVER,
    PROMPT,
    SampleTrajectory,
    Trajectories,
    examples_at,
)

L = 8


def _sample(*blocks: list[int], seed: int = 0) -> SampleTrajectory:
    """A sample with these commit steps by position; conditionals are random."""
    when = np.array(blocks, np.int16)
    counts = when.max(-1) + 1
    num = int(counts.sum())
    rng = np.random.default_rng(seed)
    return SampleTrajectory(
        start=np.arange(len(blocks)) * L,
        when=when,
        block=np.repeat(np.arange(len(blocks), dtype=np.int32), counts),
        step=np.concatenate([np.arange(count, dtype=np.int32) for count in counts]),
        log_probs=-rng.uniform(0, 9, (num, L, STALE_TOP)).astype(np.float16),
        doubts=rng.normal(size=(num, L)).astype(np.float16),
    )


# A block behind three prompt tokens, a whole one, and one that the sample leaves unfinished.
FIRST = [PROMPT, PROMPT, PROMPT, 4, 1, 0, 3, 2]
WHOLE = [7, 2, 5, 0, 1, 6, 3, 4]
CUT = [NEVER, 0, NEVER, 3, 1, NEVER, 2, NEVER]


def _trajectories() -> Trajectories:
    parts = [_sample(FIRST, WHOLE).numbered(4), _sample(CUT, seed=1).numbered(9)]
    return Trajectories.concatenate(parts)


def _order(when: NDArray[np.int16]) -> list[int]:
    """Positions in the order of their commits."""
    return [int(p) for p in np.argsort(when, kind="stable") if when[p] >= 0]


def test_all_states_but_openings_are_roots_and_the_row_before_is_one_transition_older() -> None:
    found = _trajectories()
    roots = found.roots()
    assert set(np.arange(len(found.step))) - set(roots) == {0, 5, 13}
    assert np.array_equal(found.block[roots - 1], found.block[roots])
    assert np.array_equal(found.step[roots - 1], found.step[roots] - 1)


def test_a_position_is_masked_until_its_commit_and_the_prompt_never() -> None:
    found = _trajectories()
    rows = np.array([0, 0, 5, 13, 13])
    masked = found.masked_at(rows, np.array([0, 2, 0, 0, 4]))
    assert [list(np.flatnonzero(row)) for row in masked] == [
        *([3, 4, 5, 6, 7], [3, 6, 7]),
        list(range(L)),
        *(list(range(L)), [0, 2, 5, 7]),
    ]


@pytest.mark.parametrize("depth", range(8))
def test_labels_follow_the_true_order_at_every_depth(depth: int) -> None:
    found = _trajectories()
    roots = found.roots()
    examples = examples_at(found, roots, np.full(len(roots), depth))
    for i, root in enumerate(examples.root):
        order, step = _order(found.when[found.block[root]]), int(found.step[root])
        assert examples.label[i] == order[step + depth]
        assert set(np.flatnonzero(examples.taken[i])) == set(order[step : step + depth])
        assert examples.depth[i] == depth


@pytest.mark.parametrize("depth", range(8))
def test_examples_past_the_end_of_their_block_are_dropped_and_no_others(depth: int) -> None:
    found = _trajectories()
    roots = found.roots()
    commits = (found.when.max(-1) + 1)[found.block[roots]]
    examples = examples_at(found, roots, np.full(len(roots), depth))
    assert examples.root.tolist() == roots[found.step[roots] + depth < commits].tolist()


def test_a_label_is_masked_at_its_root_and_not_taken() -> None:
    found = _trajectories()
    roots = np.repeat(found.roots(), 8)
    examples = examples_at(found, roots, np.tile(np.arange(8), len(found.roots())))
    rows = np.arange(len(examples.label))
    assert examples.masked[rows, examples.label].all()
    assert not examples.taken[rows, examples.label].any()
    assert not (examples.taken & ~examples.masked).any()


def test_a_threshold_transition_takes_all_its_positions_together() -> None:
    found = _sample([1, 0, 1, 2, 0, 3, 3, 2]).numbered(0)
    examples = examples_at(found, np.array([1]), np.array([2]))
    assert np.flatnonzero(examples.taken[0]).tolist() == [0, 2, 3, 7]


def test_joined_samples_keep_states_with_their_blocks_and_numbers() -> None:
    one = _trajectories()
    both = Trajectories.concatenate([one, one])
    assert np.array_equal(both.when[both.block], np.tile(one.when[one.block], (2, 1)))
    assert np.array_equal(both.log_probs[len(one.step) :], one.log_probs)
    assert both.sample.tolist() == [4, 4, 9, 4, 4, 9]


def test_selected_states_still_name_their_blocks() -> None:
    found = _trajectories()
    chosen = found.select(found.sample == 9)
    assert chosen.step.tolist() == [0, 1, 2, 3]
    assert (chosen.sample[chosen.block] == 9).all()
    assert np.array_equal(chosen.doubts, found.doubts[found.block == 2])


def test_bytes_give_the_sample_back() -> None:
    sample = _sample(FIRST, WHOLE, CUT)
    again = SampleTrajectory.from_bytes(sample.to_bytes())
    for name, array in sample._asdict().items():
        assert getattr(again, name).dtype == array.dtype
        assert np.array_equal(getattr(again, name), array), name


def test_stored_numbers_are_little_endian() -> None:
    stored = _sample(CUT).to_bytes()
    assert stored["when"][:6] == b"\xff\xff\x00\x00\xff\xff"
    assert stored["step"][4:8] == b"\x01\x00\x00\x00"


@pytest.mark.parametrize("name", ["when", "block", "log_probs", "doubts"])
def test_bytes_of_another_size_are_refused(name: str) -> None:
    stored = _sample(FIRST, WHOLE).to_bytes()
    with pytest.raises(ValueError, match="reshape"):
        SampleTrajectory.from_bytes(stored | {name: stored[name][:-4]})
