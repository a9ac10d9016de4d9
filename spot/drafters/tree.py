"""Best-first trees of hypothetical states by prefix mass, grown level by level for many sequences.

A node is a set of (position, token) commits beyond the root; orders that lead to the same set merge
and keep the largest path mass. Every factor is at most 1, so mass never grows along a path, and
expanding a whole level at a time keeps the same nodes as a best-first heap (paper section 4.2).

Legend: B sequences, N nodes of a level, L block length, Y token hypotheses per position.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from spot.drafters.base import Drafts

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

# q [N, L]: how likely each position commits next, for nodes (owner [N], taken [N, L], depth [N])
Scorer = Callable[[Ints, Flags, Ints], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypotheses:
    """What a position would hold if it committed: tokens and their probabilities, [B, L, Y]."""

    tokens: Ints
    masses: Floats


@dataclass(slots=True, kw_only=True)
class Nodes:
    """Parallel arrays of nodes."""

    owner: Ints  # [N]
    taken: Flags  # [N, L]
    states: Ints  # [N, L]
    mass: Floats  # [N]
    depth: Ints  # [N], transitions beyond the root
    code: NDArray[np.uint64]  # [N], order-free hash of the set of commits

    def pick(self, index: NDArray[np.intp]) -> "Nodes":
        """A subset."""
        return Nodes(**{name: getattr(self, name)[index] for name in self.__slots__})

    def __len__(self) -> int:
        return len(self.owner)


# Children of a level whose mass exceeds their sequence's floor [B]; no node of a level is full.
Expander = Callable[[Nodes, Floats], Nodes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What limits the trees."""

    budgets: Ints  # [B], nodes per sequence
    full_states: Flags  # [B], whether a full state is of use
    depths: Ints  # [B], levels per sequence
    floors: Floats  # [B], mass that every node must reach; 0 switches it off
    deeper: Floats  # [B], mass that a node must reach to have children
    merged: bool = True  # equal states are one node; a path tree keeps them apart


def join(a: Nodes, b: Nodes) -> Nodes:
    """Both."""
    return Nodes(**{n: np.concatenate([getattr(a, n), getattr(b, n)]) for n in Nodes.__slots__})


@cache
def codes(shape: tuple[int, int]) -> NDArray[np.uint64]:
    """A random word per (position, hypothesis); a set's code is the sum of its members'."""
    return np.random.default_rng(0).integers(0, 2**63, shape, dtype=np.uint64)


def expand_positions(
    scorer: Scorer, hypotheses: Hypotheses, *, branching: int | None = None
) -> Expander:
    """Children by one commit each: mass of the parent, times order law, times token factor.

    Args:
        scorer: the order law, called once per level for all sequences.
        hypotheses: token hypotheses.
        branching: keep only so many children of a node; 1 makes a chain.
    """
    words = codes(hypotheses.masses.shape[1:])

    def expand(level: Nodes, floors: Floats) -> Nodes:
        q = scorer(level.owner, level.taken, level.depth)
        mass = level.mass[:, None, None] * q[:, :, None] * hypotheses.masses[level.owner]
        if branching is not None:
            mass = _heaviest(mass, branching)
        parent, position, which = np.nonzero(mass > floors[level.owner][:, None, None])
        child = level.pick(parent)
        each = np.arange(len(parent))
        child.taken = child.taken.copy()
        child.taken[each, position] = True
        child.states = child.states.copy()
        child.states[each, position] = hypotheses.tokens[child.owner, position, which]
        child.mass = mass[parent, position, which]
        child.depth = child.depth + 1
        child.code = child.code + words[position, which]
        return child

    return expand


def _heaviest(mass: Floats, count: int) -> Floats:
    """Each node's ``count`` heaviest children [N, L, Y]; the others get no mass."""
    flat = mass.reshape(len(mass), -1)
    best = np.argsort(-flat, axis=1, kind="stable")[:, :count]
    kept = np.zeros_like(flat)
    np.put_along_axis(kept, best, np.take_along_axis(flat, best, axis=1), axis=1)
    return kept.reshape(mass.shape)


def grow(expand: Expander, *, roots: Ints, masked: Flags, bounds: Bounds) -> list[Drafts]:
    """Grow one tree per sequence.

    Args:
        expand: children of a level.
        roots: [B, L].
        masked: masked at the root, [B, L].
        bounds: budgets, floors, and whether equal states merge.
    """
    room = masked.sum(1)
    level = _roots(roots)
    kept = level.pick(np.empty(0, np.intp))
    while True:
        level = level.pick(np.flatnonzero(_may_grow(level, room, bounds)))
        if not len(level):
            break
        fresh = expand(level, _floors(kept, bounds))
        usable = (fresh.taken.sum(1) < room[fresh.owner]) | bounds.full_states[fresh.owner]
        fresh = fresh.pick(np.flatnonzero(usable))
        if bounds.merged:
            fresh = _merge(fresh)
        if not len(fresh):
            break
        depth = fresh.depth[0]
        kept = join(kept, fresh)
        kept = _best(_merge(kept) if bounds.merged else kept, bounds.budgets)
        level = kept.pick(np.flatnonzero(kept.depth == depth))
    return [_drafts(kept.pick(np.flatnonzero(kept.owner == b))) for b in range(len(roots))]


def _may_grow(level: Nodes, room: Ints, bounds: Bounds) -> Flags:
    """Nodes that have masked positions left, depth, and mass enough for children."""
    owner = level.owner
    rich = level.mass >= bounds.deeper[owner]
    may: Flags = (level.taken.sum(1) < room[owner]) & (level.depth < bounds.depths[owner]) & rich
    return may


def _roots(roots: Ints) -> Nodes:
    num = len(roots)
    return Nodes(
        owner=np.arange(num),
        taken=np.zeros(roots.shape, bool),
        states=roots,
        mass=np.ones(num, np.float32),
        depth=np.zeros(num, np.int64),
        code=np.zeros(num, np.uint64),
    )


def _merge(nodes: Nodes) -> Nodes:
    """Of nodes with the same commits, keep the one with the largest mass."""
    order = np.lexsort((-nodes.mass, nodes.code, nodes.owner))
    owner, code = nodes.owner[order], nodes.code[order]
    first = np.ones(len(order), bool)
    first[1:] = (owner[1:] != owner[:-1]) | (code[1:] != code[:-1])
    return nodes.pick(order[first])


def _best(nodes: Nodes, budgets: Ints) -> Nodes:
    """Each sequence's heaviest nodes within its budget, parents before children."""
    order = np.lexsort((nodes.depth, -nodes.mass, nodes.owner))
    owner = nodes.owner[order]
    rank = np.arange(len(order)) - np.searchsorted(owner, owner)
    return nodes.pick(order[rank < budgets[owner]])


def _floors(kept: Nodes, bounds: Bounds) -> Floats:
    """Mass that a new node must exceed: just under its floor, or a full tree's lightest node."""
    budgets = bounds.budgets
    floors = np.maximum(np.nextafter(bounds.floors, np.float32(-1)), np.float32(0))
    counts = np.bincount(kept.owner, minlength=len(budgets))
    lightest = np.full(len(budgets), np.inf, np.float32)
    np.minimum.at(lightest, kept.owner, kept.mass)
    full = counts >= budgets
    floors[full] = np.maximum(floors[full], lightest[full])
    return floors


def _drafts(nodes: Nodes) -> Drafts:
    return Drafts(nodes.states, nodes.mass, nodes.depth)
