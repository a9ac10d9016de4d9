"""Recorded trajectories: what a root is paired with, and which examples are made of it."""

from pathlib import Path

import numpy as np
import pytest

from spot.conditionals import stale_of
from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.base import STALE_TOP, Stale
from spot.limits import Limits
from spot.targets.base import State, Unit, evaluate
from spot.targets.sdar import SdarTarget
from spot.training.trajectories import Recorder, Root, Trajectories, assemble, examples_at
from spot.trajectory import Commit, Decoded
from spot.transition import Rule
from tests.twins import BLOCK_LENGTH as L
from tests.twins import MASK_ID

KEY = 2**63 + 11
PROMPT = tuple(range(40, 40 + L + 3))
LIMITS = Limits(prompt_tokens=len(PROMPT), max_tokens=20)
GREEDY, SAMPLED = Rule(), Rule(temperature=1.0)


def _record(twin: SdarTarget, rule: Rule) -> tuple[Decoded, dict[int, list[Root]]]:
    recorder = Recorder(mask_id=MASK_ID)
    sample = Sample(prompt_ids=PROMPT, key=KEY, limits=LIMITS)
    decoded = ReferenceDecoder(twin, rule=rule, drafter=recorder, budget=1).decode(sample)
    return decoded, recorder.take(KEY)


def _state(commits: list[Commit]) -> State:
    """Everything from position 0 to the end of the grid, after some commits."""
    state = np.full(-(-LIMITS.end // L) * L, MASK_ID, np.int64)
    state[: len(PROMPT)] = PROMPT
    for commit in commits:
        state[commit.position] = commit.token
    return state


def _evaluated(twin: SdarTarget, state: State, start: int) -> Stale:
    """The conditionals of the block at ``start``, computed from nothing."""
    blocks = state.reshape(-1, L)
    num = start // L
    stores = [
        Unit(state=blocks[b], start=b * L, pages=tuple(range(b)), write=b) for b in range(num)
    ]
    unit = Unit(state=blocks[num], start=start, pages=tuple(range(num)))
    found = evaluate(twin, [unit, *stores], twin.new_pages(num + 1), num_states=1)
    return stale_of(found, [0])[0]


@pytest.mark.parametrize("rule", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_recording_changes_nothing(twin: SdarTarget, rule: Rule) -> None:
    sample = Sample(prompt_ids=PROMPT, key=KEY, limits=LIMITS)
    free = ReferenceDecoder(twin, rule=rule).decode(sample)
    assert _record(twin, rule)[0].trajectory.commits == free.trajectory.commits


@pytest.mark.parametrize("rule", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_roots_carry_the_conditionals_of_the_state_one_commit_before(
    twin: SdarTarget, rule: Rule
) -> None:
    decoded, by_start = _record(twin, rule)
    commits = decoded.trajectory.commits
    assert list(by_start) == [L, 2 * L, 3 * L]
    for start, roots in by_start.items():
        inside = [i for i, c in enumerate(commits) if start <= c.position < start + L]
        assert len(roots) == len(inside) - 1, "every root of a block but its opening"
        for root, index in zip(roots, inside[1:], strict=True):
            at_root, before = _state(commits[:index]), _state(commits[: index - 1])
            stale = _evaluated(twin, before, start)
            assert np.array_equal(root.masked, at_root[start : start + L] == MASK_ID)
            assert np.array_equal(root.log_probs, stale.log_probs)
            assert np.array_equal(root.doubts, stale.doubts)


def test_a_finished_sample_is_forgotten_and_others_are_not(twin: SdarTarget) -> None:
    recorder = Recorder(mask_id=MASK_ID)
    decoder = ReferenceDecoder(twin, rule=SAMPLED, drafter=recorder, budget=1)
    for key in (1, 2):
        decoder.decode(Sample(prompt_ids=PROMPT, key=key, limits=LIMITS))
    assert recorder.take(1)
    assert recorder.take(1) == {}
    assert recorder.take(2)


def _seen(order: list[int]) -> list[Root]:
    """Roots of a block whose commits have this order, one before each commit but the first."""
    roots = []
    for step in range(1, len(order)):
        masked = np.zeros(L, bool)
        masked[order[step:]] = True
        mark = np.full((L, STALE_TOP), -step, np.float16)
        roots.append(Root(masked, mark, mark[:, 0]))
    return roots


def _sample(
    number: int, orders: dict[int, list[int]]
) -> tuple[int, dict[int, list[Root]], list[int]]:
    roots = {start: _seen(order) for start, order in orders.items()}
    return number, roots, [start + p for start, order in orders.items() for p in order]


def _trajectories() -> Trajectories:
    """Three blocks of two samples; the first block holds three prompt tokens, the last is cut."""
    rng = np.random.default_rng(0)
    first = [int(p) for p in 3 + rng.permutation(L - 3)]
    whole, cut = ([int(p) for p in rng.permutation(L)] for _ in range(2))
    samples = [_sample(4, {L: first, 2 * L: whole}), _sample(9, {0: cut[:4]})]
    return assemble(samples, length=L)


def test_orders_are_positions_inside_the_block() -> None:
    found = _trajectories()
    commits = (found.order >= 0).sum(1)
    assert commits.tolist() == [L - 3, L, 4]
    assert found.sample.tolist() == [4, 4, 9]
    assert all(len(set(o[:n])) == n for o, n in zip(found.order, commits, strict=True))


@pytest.mark.parametrize("depth", range(8))
def test_labels_follow_the_true_order_at_every_depth(depth: int) -> None:
    found = _trajectories()
    roots = np.arange(len(found.step))
    examples = examples_at(found, roots, np.full(len(roots), depth))
    for i, root in enumerate(examples.root):
        order, step = found.order[found.block[root]].tolist(), int(found.step[root])
        assert examples.label[i] == order[step + depth]
        assert set(np.flatnonzero(examples.taken[i])) == set(order[step : step + depth])
        assert examples.depth[i] == depth


@pytest.mark.parametrize("depth", range(8))
def test_examples_past_the_end_of_their_block_are_dropped_and_no_others(depth: int) -> None:
    found = _trajectories()
    roots = np.arange(len(found.step))
    commits = (found.order >= 0).sum(1)[found.block]
    examples = examples_at(found, roots, np.full(len(roots), depth))
    assert examples.root.tolist() == roots[found.step + depth < commits].tolist()


def test_a_label_is_masked_at_its_root_and_not_taken() -> None:
    found = _trajectories()
    roots = np.repeat(np.arange(len(found.step)), 8)
    examples = examples_at(found, roots, np.tile(np.arange(8), len(found.step)))
    rows = np.arange(len(examples.label))
    assert found.masked[examples.root][rows, examples.label].all()
    assert not examples.taken[rows, examples.label].any()


def test_joined_files_keep_roots_with_their_blocks(tmp_path: Path) -> None:
    one = _trajectories()
    paths = [tmp_path / name for name in ("a", "b")]
    for path in paths:
        one.save(path)
    both = Trajectories.load(paths)
    assert np.array_equal(both.order[both.block], np.tile(one.order[one.block], (2, 1)))
    assert np.array_equal(both.log_probs[len(one.step) :], one.log_probs)
    assert both.sample.tolist() == 2 * one.sample.tolist()


def test_selected_roots_still_name_their_blocks() -> None:
    found = _trajectories()
    chosen = found.select(found.sample == 9)
    assert len(chosen.step) == 3
    assert (chosen.sample[chosen.block] == 9).all()
    assert np.array_equal(chosen.masked, found.masked[found.block == 2])
