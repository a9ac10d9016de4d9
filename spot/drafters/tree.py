"""Best-first trees of hypothetical states by prefix mass, grown level by level for many sequences.

A node is a set of (position, token) commits beyond the root; orders that lead to the same set merge
and keep the largest path mass. Every factor is at most 1, so mass never grows along a path, and
expanding a whole level at a time keeps the same nodes as a best-first heap (paper section 4.2).

Legend: B sequences, N nodes of a level, L block length, Y token hypotheses per position.
"""

from collections.abc import Callable
from dataclasses import dataclass

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
    depth: Ints  # [N]
    code: NDArray[np.uint64]  # [N], order-free hash of the set of commits

    def pick(self, index: NDArray[np.intp]) -> "Nodes":
        """A subset."""
        return Nodes(**{name: getattr(self, name)[index] for name in self.__slots__})

    def __len__(self) -> int:
        return len(self.owner)


def _join(a: Nodes, b: Nodes) -> Nodes:
    return Nodes(**{n: np.concatenate([getattr(a, n), getattr(b, n)]) for n in Nodes.__slots__})


def _codes(shape: tuple[int, int]) -> NDArray[np.uint64]:
    return np.random.default_rng(0).integers(0, 2**63, shape, dtype=np.uint64)


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


def _children(level: Nodes, mass: Floats, *, floor: Floats, hypotheses: Hypotheses) -> Nodes:
    """All children whose mass passes their sequence's floor."""
    parent, position, which = np.nonzero(mass > floor[level.owner][:, None, None])
    child = level.pick(parent)
    each = np.arange(len(parent))
    child.taken = child.taken.copy()
    child.taken[each, position] = True
    child.states = child.states.copy()
    child.states[each, position] = hypotheses.tokens[child.owner, position, which]
    child.mass = mass[parent, position, which]
    child.depth = child.depth + 1
    child.code = child.code + _codes(mass.shape[1:])[position, which]
    return child


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


def _floors(kept: Nodes, budgets: Ints, gamma: float) -> Floats:
    """Mass that a new node must exceed: gamma, and the lightest kept node of a full tree."""
    floors = np.full(len(budgets), np.nextafter(np.float32(gamma), np.float32(-1)), np.float32)
    floors = np.maximum(floors, 0)
    counts = np.bincount(kept.owner, minlength=len(budgets))
    lightest = np.full(len(budgets), np.inf, np.float32)
    np.minimum.at(lightest, kept.owner, kept.mass)
    full = counts >= budgets
    floors[full] = np.maximum(floors[full], lightest[full])
    return floors


def grow(
    scorer: Scorer,
    *,
    roots: Ints,
    max_depth: Ints,
    hypotheses: Hypotheses,
    budgets: Ints,
    gamma: float,
) -> list[Drafts]:
    """Grow one tree per sequence.

    Args:
        scorer: the order law, called once per level for all sequences.
        roots: [B, L].
        max_depth: most commits beyond each root, [B]. A full state yields no commit of its own: it
            is of use only to a decoder that looks through to the next block.
        hypotheses: token hypotheses.
        budgets: nodes per sequence, [B].
        gamma: mass floor; 0 switches it off.
    """
    level = _roots(roots)
    kept = level.pick(np.empty(0, np.intp))
    while True:
        level = level.pick(np.flatnonzero(level.depth < max_depth[level.owner]))
        if not len(level):
            break
        q = scorer(level.owner, level.taken, level.depth)
        mass = level.mass[:, None, None] * q[:, :, None] * hypotheses.masses[level.owner]
        floor = _floors(kept, budgets, gamma)
        fresh = _merge(_children(level, mass, floor=floor, hypotheses=hypotheses))
        if not len(fresh):
            break
        kept = _best(_join(kept, fresh), budgets)
        level = kept.pick(np.flatnonzero(kept.depth == fresh.depth[0]))
    return [_drafts(kept.pick(np.flatnonzero(kept.owner == b))) for b in range(len(roots))]


def _drafts(nodes: Nodes) -> Drafts:
    return Drafts(nodes.states, nodes.mass, nodes.depth)
