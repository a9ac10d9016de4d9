"""Verification: all evaluated states make their transition, then a walk follows the one real path.

A draft is accepted if and only if it equals the target's own successor of an accepted state. The
walk goes by state, not by edge, so merged and graph-shaped drafts need nothing special.

Legend: S states, E (sample, state) pairs, L positions, V vocabulary.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spot.limits import Ending, Limits, ending
from spot.targets.base import Conditionals, State
from spot.trajectory import Commit
from spot.transition import Rule, draw, select


class Transitions(NamedTuple):
    """Phi of (sample, state) pairs; everything a walk and a trace need."""

    position: NDArray[np.int64]  # [E], index into the block
    token: NDArray[np.int64]  # [E]
    confidence: NDArray[np.float32]  # [E], of the chosen position
    log_probability: NDArray[np.float32]  # [E], of the chosen token, untempered


def transitions(
    conditionals: Conditionals, *, states: Tensor, starts: Tensor, keys: Tensor, rule: Rule
) -> Transitions:
    """Phi of (sample, state) pairs; every state has a masked position.

    Args:
        conditionals: of S states.
        states: which state each pair is about, int64 [E]; samples may share one.
        starts: absolute position of each pair's block, int64 [E].
        keys: sample keys, int64 [E].
        rule: the transition rule.
    """
    position = select(conditionals.dense_confidence()[states])
    row = conditionals.row_of[states].gather(1, position[:, None])[:, 0]
    best, conf = conditionals.token[row], conditionals.confidence[row]
    if rule.temperature == 0.0:
        token, log_prob = best, conf
    else:
        logits = conditionals.logits[row]
        token = draw(logits, keys=keys, positions=starts + position, rule=rule)
        drop = logits.gather(1, token[:, None]) - logits.gather(1, best[:, None])
        log_prob = conf + drop[:, 0]
    columns = (x.cpu().numpy() for x in (position, token, conf, log_prob))
    return Transitions(*columns)


class Walk(NamedTuple):
    """Where a round leaves a sample."""

    root: State  # the next root: one commit younger than the last accepted state
    last: int  # the last accepted state; its conditionals are the next round's stale ones
    commits: list[Commit]
    end: Ending | None
    crossed: State | None = None  # the full block that the walk went through, if it did

    @property
    def accepted(self) -> int:
        """Drafts accepted: every commit but the last led to an evaluated state."""
        return len(self.commits) - 1


def walk(
    states: list[State],
    phi: Transitions,
    *,
    first: int,
    start: int,
    mask_id: int,
    limits: Limits,
    openings: Mapping[bytes, int] | None = None,
) -> Walk:
    """Follow Phi from the root through the evaluated states, by state.

    Args:
        states: root first, then drafts; duplicates are harmless.
        phi: transitions; those of these states begin at index ``first``.
        first: see ``phi``.
        start: absolute position of the block.
        mask_id: the mask.
        limits: the sample's limits.
        openings: of drafted full states, by their bytes: where in ``states`` the next block's
            opening behind them stands. Passing from one to the other is a move, not a commit.
    """
    openings = openings or {}
    behind = set(openings.values())
    index_of = {
        s.tobytes(): i
        for i, s in reversed(list(enumerate(states)))
        if i not in behind and (s == mask_id).any()
    }
    commits: list[Commit] = []
    at, crossed = 0, None
    while True:
        e = first + at
        position, token = int(phi.position[e]), int(phi.token[e])
        after = successor(states[at], position, token)
        commits.append(
            Commit(start + position, token, float(phi.confidence[e]), float(phi.log_probability[e]))
        )
        end = ending(after, start=start, mask_id=mask_id, limits=limits)
        name = after.tobytes()
        following = None if end is not None or crossed is not None else index_of.get(name)
        if end is None and crossed is None and name in openings:
            following, crossed, start = openings[name], after, start + len(after)
        if following is None:
            return Walk(after, at, commits, end, crossed)
        at = following


def successor(state: State, position: int, token: int) -> State:
    """``x (+) (s, v)``: the state with one more commit."""
    after = state.copy()
    after[position] = token
    return after


def signed(key: int) -> int:
    """The 64 bits of an unsigned sample key as a signed integer, for int64 tensors."""
    return key - 2**64 if key >= 2**63 else key
