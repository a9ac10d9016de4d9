"""Verification: all evaluated states make their transition, then a walk follows the one real path.

A draft is accepted if and only if it equals the target's own successor of an accepted state. The
walk goes by state, not by edge, so merged and graph-shaped drafts need nothing special.

Verifiers (paper section 4.3):

* *coupled*: the successor is Phi, a fixed function of the state under the sample's noise. Exact.
* *uncoupled*: the same walk; only the drafter's token hypotheses ignore the noise. Exact.
* *greedy*: a draft that holds the best token is accepted as if the temperature were 0; the target
  draws only where no draft does. Lossy above temperature 0.
* *rejection*: accept-residual sampling along a chain (``spot.rejection``). Exact in law.

Legend: S states, E (sample, state) pairs, C commits, L positions, V vocabulary.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spot.limits import Ending, Limits, ending
from spot.released import Selection, drawn_confidence, released_selection
from spot.targets.base import Conditionals, State
from spot.targets.logit_rows import rows_at_once
from spot.trajectory import Commit, Move
from spot.transition import Rule, draw, select, tied, weighed

DRAWING_BYTES = 32  # of a logit while a token is drawn: noise and tempered logits in fp64

VerifierName = Literal["coupled", "uncoupled", "greedy", "rejection"]


class Transitions(NamedTuple):
    """Phi of (sample, state) pairs; everything a walk and a trace need.

    The commits of pair ``e`` are those from ``first[e]`` to ``first[e + 1]``, by position.
    """

    first: NDArray[np.int64]  # [E + 1]
    position: NDArray[np.int64]  # [C], absolute
    token: NDArray[np.int64]  # [C]
    confidence: NDArray[np.float32]  # [C], of the position
    log_probability: NDArray[np.float32]  # [C], of the token, untempered
    best: NDArray[np.int64]  # [C], the token at temperature 0
    tied: NDArray[np.bool_]  # [E]

    def move(self, pair: int) -> Move:
        """What pair ``pair`` commits."""
        places = range(self.first[pair], self.first[pair + 1])
        return tuple(self._commit(c, self.token, self.log_probability) for c in places)

    def greedy_move(self, pair: int) -> Move:
        """The same positions with their best tokens."""
        places = range(self.first[pair], self.first[pair + 1])
        return tuple(self._commit(c, self.best, self.confidence) for c in places)

    def _commit(
        self, c: int, token: NDArray[np.int64], log_probability: NDArray[np.float32]
    ) -> Commit:
        confidence = float(self.confidence[c])
        return Commit(int(self.position[c]), int(token[c]), confidence, float(log_probability[c]))


def transitions(
    conditionals: Conditionals,
    *,
    states: Tensor,
    starts: Tensor,
    keys: Tensor,
    steps: Tensor,
    rule: Rule,
) -> Transitions:
    """Phi of (sample, state) pairs; every state has a masked position.

    Args:
        conditionals: of S states.
        states: which state each pair is about, int64 [E]; samples may share one.
        starts: absolute position of each pair's block, int64 [E].
        keys: sample keys, int64 [E].
        steps: transitions made in the block before each pair's state, int64 [E].
        rule: the transition rule.
    """
    chosen, ties = _selection(
        conditionals, states=states, starts=starts, keys=keys, steps=steps, rule=rule
    )
    pair, position = chosen.nonzero(as_tuple=True)
    row = conditionals.row_of[states[pair], position]
    absolute = starts[pair] + position
    drawn = _drawn(conditionals, _Rows(row, keys[pair], absolute, steps[pair]), rule)
    counts = chosen.sum(-1).cpu().numpy()
    return Transitions(
        first=np.concatenate([[0], np.cumsum(counts)]),
        position=absolute.cpu().numpy(),
        token=drawn.token.cpu().numpy(),
        confidence=drawn.confidence.cpu().numpy(),
        log_probability=drawn.log_probability.cpu().numpy(),
        best=conditionals.token[row].cpu().numpy(),
        tied=ties.cpu().numpy(),
    )


class _Drawn(NamedTuple):
    """What rows commit; the fields of ``Transitions``, [R] each."""

    token: Tensor
    confidence: Tensor
    log_probability: Tensor


class _Rows(NamedTuple):
    """Rows that commit, and whose noise they take, int64 [R] each."""

    row: Tensor
    keys: Tensor
    positions: Tensor
    steps: Tensor


def _drawn(conditionals: Conditionals, rows: _Rows, rule: Rule) -> _Drawn:
    """The tokens of chosen rows, a piece of the vocabulary's rows at a time."""
    if rule.temperature == 0.0:
        best_log = conditionals.confidence[rows.row]
        return _Drawn(conditionals.token[rows.row], best_log, best_log)
    size = rows_at_once(conditionals.logits.shape[1], bytes_each=DRAWING_BYTES)
    pieces = zip(*(column.split(size) for column in rows), strict=True)
    parts = [_draw_piece(conditionals, _Rows(*piece), rule) for piece in pieces]
    return _Drawn(*(torch.cat(column) for column in zip(*parts, strict=True)))


def _draw_piece(conditionals: Conditionals, rows: _Rows, rule: Rule) -> _Drawn:
    """Above temperature 0."""
    logits, best_log = conditionals.logits[rows.row], conditionals.confidence[rows.row]
    token = draw(logits, keys=rows.keys, positions=rows.positions, steps=rows.steps, rule=rule)
    best = conditionals.token[rows.row]
    drop = logits.gather(1, token[:, None]) - logits.gather(1, best[:, None])
    own = drawn_confidence(logits, token, rule).float() if rule.is_released else best_log
    return _Drawn(token, own, best_log + drop[:, 0])


def _selection(
    conditionals: Conditionals,
    *,
    states: Tensor,
    starts: Tensor,
    keys: Tensor,
    steps: Tensor,
    rule: Rule,
) -> Selection:
    """The positions that each pair commits."""
    if rule.is_released:
        return released_selection(
            conditionals, states=states, starts=starts, keys=keys, steps=steps, rule=rule
        )
    sure = weighed(conditionals.confidence, conditionals.token, rule)
    conf = conditionals._replace(confidence=sure).dense_confidence()
    return Selection(select(conf, rule)[states], tied(conf, rule)[states])


def check_verifier(verifier: VerifierName, *, rule: Rule) -> None:
    """Raise ValueError if a verifier is not defined for the rule."""
    if verifier == "rejection" and rule.name != "strict":
        raise ValueError("rejection sampling is defined for the strict rule only")
    if verifier == "greedy" and rule.is_released:
        raise ValueError(f"greedy match is not defined for the {rule.name} rule; use coupled")


class Step(NamedTuple):
    """What a verifier says at a state.

    ``move`` is made if the state it leads to was evaluated or nothing else is offered; otherwise
    ``instead`` is made, and the walk ends there.
    """

    move: Move
    instead: Move | None = None


Stepper = Callable[[int], Step]
"""The step at a state, given the state's index in its walk."""


def coupled(phi: Transitions, first: int) -> Stepper:
    """The target's own transition; the pairs of the walk's states begin at index ``first``."""
    return lambda index: Step(phi.move(first + index))


def greedy(phi: Transitions, first: int) -> Stepper:
    """The best tokens where a draft holds them, a draw where none does."""
    return lambda index: Step(phi.greedy_move(first + index), phi.move(first + index))


class Walk(NamedTuple):
    """Where a round leaves a sample."""

    root: State  # the next root: one transition younger than the last accepted state
    last: int  # the last accepted state; its conditionals are the next round's stale ones
    moves: list[Move]
    path: list[int]  # the states that made them, in order
    end: Ending | None
    crossed: State | None = None  # the full block that the walk went through, if it did
    moves_behind: int = 0  # of the moves, those in the next block, if it was crossed

    @property
    def accepted(self) -> int:
        """Drafts accepted: every move but the last led to an evaluated state."""
        return len(self.moves) - 1


def walk(
    states: list[State],
    stepper: Stepper,
    *,
    start: int,
    mask_id: int,
    limits: Limits,
    openings: Mapping[bytes, int] | None = None,
    steps: Sequence[int] | None = None,
) -> Walk:
    """Follow the target from the root through the evaluated states, by state.

    Args:
        states: root first, then drafts; duplicates are harmless.
        stepper: what the verifier does at each state.
        start: absolute position of the block.
        mask_id: the mask.
        limits: the sample's limits.
        openings: of drafted full states, by their bytes: where in ``states`` the next block's
            opening behind them stands. Passing from one to the other is a move of the walk, not a
            transition.
        steps: under a rule that counts steps, the step that each state's transition was computed
            for: a state that is reached at another one has not been evaluated.
    """
    openings = openings or {}
    index_of = _index(states, behind=set(openings.values()), mask_id=mask_id, steps=steps)
    step_of_root = 0 if steps is None else steps[0]
    moves: list[Move] = []
    path: list[int] = []
    at, crossed, in_block = 0, None, 0
    while True:
        step = stepper(at)
        move, after = step.move, successor(states[at], step.move, start=start)
        name = after.tobytes()
        reached = name, 0 if steps is None else step_of_root + in_block + 1
        evaluated = crossed is None and (reached in index_of or name in openings)
        if step.instead is not None and not evaluated:
            move, after = step.instead, successor(states[at], step.instead, start=start)
        moves.append(move)
        path.append(at)
        in_block += 1
        end = ending(after, start=start, mask_id=mask_id, limits=limits)
        if end is not None or not evaluated:
            return Walk(after, at, moves, path, end, crossed, 0 if crossed is None else in_block)
        if reached in index_of:
            at = index_of[reached]
        else:
            at, crossed, start, in_block = openings[name], after, start + len(after), 0


def _index(
    states: list[State], *, behind: set[int], mask_id: int, steps: Sequence[int] | None
) -> dict[tuple[bytes, int], int]:
    """Where each state of the block that has a transition stands first, by bytes and step."""
    return {
        (state.tobytes(), 0 if steps is None else steps[i]): i
        for i, state in reversed(list(enumerate(states)))
        if i not in behind and (state == mask_id).any()
    }


def successor(state: State, move: Move, *, start: int) -> State:
    """``x (+) move``: the state with one more transition."""
    after = state.copy()
    for commit in move:
        after[commit.position - start] = commit.token
    return after


def signed(key: int) -> int:
    """The 64 bits of an unsigned sample key as a signed integer, for int64 tensors."""
    return key - 2**64 if key >= 2**63 else key
