"""The level-wise tree against a naive best-first heap that expands one node at a time."""

import heapq

import numpy as np
import pytest
from numpy.typing import NDArray

from spot.drafters.base import ANY_DEPTH, Drafts
from spot.drafters.tree import Bounds, Flags, Floats, Hypotheses, Ints, expand_positions, grow

LENGTH = 6


class Law:
    """A fixed random order law: position scores that depend on what is taken."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.base = rng.normal(size=LENGTH) * 2
        self.pull = rng.normal(size=(LENGTH, LENGTH))
        self.calls = 0

    def __call__(self, owner: Ints, taken: Flags, depth: Ints) -> Floats:
        self.calls += 1
        scores = self.base + taken @ self.pull
        scores[taken] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return np.asarray(weights / weights.sum(-1, keepdims=True), np.float32)


def _hypotheses(seed: int, num: int) -> Hypotheses:
    rng = np.random.default_rng(seed + 1000)
    first = rng.uniform(0.4, 1.0, (num, LENGTH))
    second = np.where(first < 0.6, 1 - first, 0.0)
    tokens = rng.integers(0, 50, (num, LENGTH, 1)) + np.array([0, 1])  # best and runner-up differ
    return Hypotheses(tokens=tokens, masses=np.stack([first, second], -1).astype(np.float32))


def _grow(law: Law, hypotheses: Hypotheses, budgets: list[int], gamma: float = 0.0) -> list[Drafts]:
    num = len(budgets)
    return grow(
        expand_positions(law, hypotheses),
        roots=np.full((num, LENGTH), -1),
        masked=np.ones((num, LENGTH), bool),
        bounds=Bounds(
            budgets=np.array(budgets),
            full_states=np.zeros(num, bool),
            depths=np.full(num, ANY_DEPTH),
            floors=np.full(num, gamma, np.float32),
            deeper=np.zeros(num, np.float32),
        ),
    )


def _naive(law: Law, hypotheses: Hypotheses, budget: int, gamma: float) -> dict[bytes, float]:
    """Best-first by path mass; a state counts once, with its heaviest path."""
    root: NDArray[np.int64] = np.full(LENGTH, -1)
    heap: list[tuple[float, bytes]] = [(-1.0, root.tobytes())]
    done: dict[bytes, float] = {}
    while heap and len(done) <= budget:
        mass, name = heapq.heappop(heap)
        if name in done:
            continue
        done[name] = -mass
        state = np.frombuffer(name, np.int64)
        taken = state >= 0
        if taken.sum() + 1 >= LENGTH:
            continue
        q = law(np.zeros(1, int), taken[None], np.zeros(1, int))[0]
        for position in np.flatnonzero(~taken):
            for which in range(2):
                child_mass = -mass * q[position] * hypotheses.masses[0, position, which]
                if child_mass > 0 and child_mass >= gamma:
                    child = state.copy()
                    child[position] = hypotheses.tokens[0, position, which]
                    heapq.heappush(heap, (-child_mass, child.tobytes()))
    done.pop(root.tobytes())
    return done


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("budget", "gamma"), [(1, 0.0), (5, 0.0), (20, 0.0), (20, 0.05)])
def test_levels_keep_what_a_best_first_heap_keeps(seed: int, budget: int, gamma: float) -> None:
    law, hypotheses = Law(seed), _hypotheses(seed, 1)
    drafts = _grow(law, hypotheses, [budget], gamma)[0]
    found = {s.tobytes(): float(m) for s, m in zip(drafts.states, drafts.masses, strict=True)}
    expected = _naive(law, hypotheses, budget, gamma)
    assert found.keys() == expected.keys()
    assert all(found[name] == pytest.approx(expected[name], rel=1e-5) for name in found)


def test_sequences_of_one_call_do_not_disturb_each_other() -> None:
    law, both = Law(3), _hypotheses(3, 2)
    together = _grow(law, both, [7, 12])
    for index, budget in enumerate([7, 12]):
        one = Hypotheses(tokens=both.tokens[[index]], masses=both.masses[[index]])
        alone = _grow(law, one, [budget])[0]
        assert np.array_equal(alone.states, together[index].states)


def test_parents_come_before_children_and_masses_fall() -> None:
    drafts = _grow(Law(5), _hypotheses(5, 1), [20])[0]
    assert (np.diff(drafts.masses) <= 0).all()
    seen = {np.full(LENGTH, -1).tobytes()}
    for state in drafts.states:
        parents = []
        for position in np.flatnonzero(state >= 0):
            parent = state.copy()
            parent[position] = -1
            parents.append(parent.tobytes())
        assert seen.intersection(parents)
        seen.add(state.tobytes())


def test_states_are_distinct_and_never_full() -> None:
    drafts = _grow(Law(6), _hypotheses(6, 1), [200])[0]
    assert len({s.tobytes() for s in drafts.states}) == len(drafts.states)
    assert ((drafts.states < 0).sum(1) > 0).all()


def test_a_level_is_one_call() -> None:
    law = Law(7)
    drafts = _grow(law, _hypotheses(7, 1), [20])[0]
    assert law.calls <= drafts.depths.max() + 1


def test_a_zero_budget_drafts_nothing() -> None:
    assert len(_grow(Law(1), _hypotheses(1, 1), [0])[0].states) == 0
