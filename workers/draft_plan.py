"""What to draft and what of it to evaluate: pure functions of costs and worths.

Both weigh transitions against seconds. A sample's trajectory is fixed, so transitions made per
second measure progress under every rule.

Legend: N roots, C candidates, D depths.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workers.budget import Drafted, Root
from workers.costs import Floats, ForwardCost, ForwardSize, LinearCost, Number
from workers.masses import Flags, Ints


@dataclass(slots=True, kw_only=True)
class Costs:
    """Seconds of the parts of a round."""

    length: int  # positions of a block
    target: ForwardCost
    drafter: LinearCost  # of calls, levels and drafts
    host: LinearCost  # of rounds, sequences, rounds that draft, and drafts

    def alone(self, base: ForwardSize, num_sequences: int) -> float:
        """A round without drafts."""
        return float(self.target(base) + self.host(1, num_sequences, 0, 0))

    def added(self, base: ForwardSize, size: ForwardSize) -> float:
        """What computing more adds to a forward."""
        return float(self.target(base.plus(size)) - self.target(base))


class Plan(NamedTuple):
    """The best of all plans."""

    rate: float  # transitions per second, by expectation
    counts: Ints  # [N], drafts of each root
    depths: Ints  # [N], the deepest of them
    size: ForwardSize  # of the forward with all of them


def best_plan(
    roots: list[Root], worth: Floats, *, base: ForwardSize, num_sequences: int, costs: Costs
) -> Plan | None:
    """The best number of levels and, with it, the best prefix of what is to be expected.

    Args:
        roots: who could draft, N of them.
        worth: of their drafts by depth and rank, [N, D, K].
        base: the round without drafts.
        num_sequences: whose roots it evaluates.
        costs: of everything.

    Returns:
        None if no root has room for a draft.
    """
    num_depths = worth.shape[1]
    owner, below, _ = (i.ravel() for i in np.indices(worth.shape))
    order = np.argsort(-worth.ravel(), kind="stable")
    owner, depths, worths = owner[order], below[order] + 1, worth.ravel()[order]
    room, masked = np.array([(r.room, r.masked) for r in roots]).reshape(-1, 2).T[:, owner]
    levels = np.arange(1, num_depths + 1)[:, None]
    within = (depths <= levels) & (depths <= room)  # [D, C]
    if not within.any():
        return None
    wasted = np.where(depths >= masked, 1.0 - worths, 0.0)
    total = _running(base, within, sizes_of(roots, owner, wasted, length=costs.length))
    drafts = within.cumsum(axis=1)
    host = costs.host(1, num_sequences, 1, drafts)
    seconds = costs.target(total) + costs.drafter(1, levels, drafts) + host
    rates = (num_sequences + np.cumsum(within * worths, axis=1)) / seconds
    level, last = np.unravel_index(int(np.argmax(rates)), rates.shape)
    chosen = np.flatnonzero(within[level, : last + 1])
    deepest = np.zeros(len(roots), np.int64)
    np.maximum.at(deepest, owner[chosen], depths[chosen])
    return Plan(
        rate=float(rates[level, last]),
        counts=np.bincount(owner[chosen], minlength=len(roots)),
        depths=deepest,
        size=ForwardSize(*(float(np.asarray(part)[level, last]) for part in total)),
    )


def best_prefix(
    drafted: list[Drafted],
    worths: list[Floats],
    *,
    rate: float,
    base: ForwardSize,
    num_sequences: int,
    costs: Costs,
) -> list[int]:
    """How many drafts of each root make the most of the forward.

    Of all candidates by worth, the prefix that gains the most transitions beyond those that its
    seconds would bring elsewhere. All prefixes are tried, since costs are not convex.

    Args:
        drafted: the candidates, the heaviest first in each.
        worths: what they are worth.
        rate: transitions that a second brings at this load.
        base: the round without drafts.
        num_sequences: whose roots it evaluates.
        costs: of everything.
    """
    worth = np.concatenate(worths)
    owner = np.repeat(np.arange(len(drafted)), [len(w) for w in worths])
    order = np.argsort(-worth, kind="stable")
    owner, worth = owner[order], worth[order]
    wasted = np.where(np.concatenate([d.full for d in drafted])[order], 1.0 - worth, 0.0)
    more = sizes_of([d.root for d in drafted], owner, wasted, length=costs.length)
    total = _running(base, np.ones((1, len(worth)), bool), more)
    host = costs.host(1, num_sequences, 1, np.arange(1.0, len(worth) + 1.0))
    profit = np.cumsum(worth) - rate * (costs.target(total)[0] + host)
    host_s = float(costs.host(1, num_sequences, 1, 0))  # they are there, evaluated or not
    nothing = -rate * (float(costs.target(base)) + host_s)
    best = int(np.argmax(profit)) if len(worth) else -1
    taken = owner[: best + 1] if best >= 0 and profit[best] > nothing else owner[:0]
    return [int(n) for n in np.bincount(taken, minlength=len(drafted))]


def sizes_of(roots: list[Root], owner: Ints, wasted: Floats, *, length: int) -> ForwardSize:
    """Sizes of candidates, [C] each.

    A draft that fills its block is stored and the next block opened behind it: a block more, unless
    the draft is accepted, which saves that block's own store.

    Args:
        roots: N of them.
        owner: whose the candidates are, [C].
        wasted: of a draft that fills its block, how likely it is for nothing; else 0; [C].
        length: positions of a block.
    """
    context = np.array([float(r.context) for r in roots])[owner]
    masked = np.array([float(r.masked) for r in roots])[owner]
    blocks = 1.0 + wasted
    pairs = length * (context + length) * blocks
    return ForwardSize(length * blocks, pairs, np.where(wasted > 0.0, float(length), masked))


def _running(base: ForwardSize, within: Flags, sizes: ForwardSize) -> ForwardSize:
    """Sizes of the forwards that hold the first candidates within, [D, C] each."""

    def part(of_base: Number, of_each: Number) -> Floats:
        return np.asarray(of_base + np.cumsum(within * of_each, axis=1), np.float64)

    return ForwardSize(*(part(b, s) for b, s in zip(base, sizes, strict=True)))
