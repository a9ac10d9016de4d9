"""Where drafts win and lose: the paper's diagnostics (appendix G), gathered round by round.

The accumulators look on while samples are decoded with drafts. Blocks are counted from the first
one that a sample decodes. Rounds that end a sample are left out wherever a draft could have been
accepted had decoding gone on.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from spot.drafters.base import DraftRequest, Drafts, Stale
from spot.targets.base import State
from spot.training.calibrate import Reliability
from spot.training.first_choice import FirstChoice
from spot.training.observing import SeenRequest, SeenSequence
from spot.trajectory import Move
from spot.verification import Walk, successor


class DraftedRequest(SeenRequest, Protocol):
    """What was asked for, as far as it is looked at."""

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """The prompt."""


class DraftedSequence(SeenSequence, Protocol):
    """A sample between two rounds, as far as it is looked at."""

    @property
    def request(self) -> DraftedRequest:
        """What was asked for."""

    @property
    def step(self) -> int:
        """Transitions made in the block before the root."""


class DraftedEntry(Protocol):
    """A sample's part of a round, as far as it is looked at."""

    @property
    def sequence(self) -> DraftedSequence:
        """The sample."""

    @property
    def drafts(self) -> Drafts:
        """What was drafted; more masses than states where not all were taken."""

    @property
    def states(self) -> list[State]:
        """The evaluated states, root first."""

    @property
    def stored(self) -> dict[bytes, int]:
        """Drafted full states that were evaluated, by their bytes."""


@dataclass(slots=True)
class BlockCounts:
    """Rounds in one block of many samples."""

    rounds: int = 0
    drafted_rounds: int = 0
    accepted: int = 0
    stale_roots: int = 0  # roots with stale conditionals
    leader_next: int = 0  # of them, those whose surest stale position commits next
    commits: int = 0  # what these roots commit
    token_right: int = 0  # of that, tokens that are the stale best

    def row(self) -> dict[str, Any]:
        """The figures."""
        return {
            "rounds": self.rounds,
            "drafted_rounds": self.drafted_rounds,
            "accepted_per_round": _share(self.accepted, self.rounds),
            "accepted_per_drafted_round": _share(self.accepted, self.drafted_rounds),
            "stale_leader_commits_next": _share(self.leader_next, self.stale_roots),
            "stale_token_right": _share(self.token_right, self.commits),
        }


@dataclass(slots=True)
class Rejections:
    """Why the walks of drafted rounds ended where they did."""

    position_miss: int = 0  # another position, or set of them, was ranked first
    token_miss: int = 0  # the positions were ranked first, with another token
    out_of_nodes: int = 0  # the truth was ranked first, but had no node
    block_end: int = 0  # the block was full: nothing was rejected

    def row(self) -> dict[str, Any]:
        """Counts, and the shares of what was rejected."""
        total = self.position_miss + self.token_miss + self.out_of_nodes
        names = ("position_miss", "token_miss", "out_of_nodes")
        shares = {f"{name}_share": _share(getattr(self, name), total) for name in names}
        counts = {name: getattr(self, name) for name in (*names, "block_end")}
        return {"rejections": total, **counts, **shares}


@dataclass(slots=True)
class Diagnostics:
    """Looks on and counts; the observer of an engine that drafts."""

    choose: FirstChoice
    mask_id: int
    blocks: dict[int, BlockCounts] = field(default_factory=lambda: defaultdict(BlockCounts))
    rejections: Rejections = field(default_factory=Rejections)
    masses: Reliability = field(default_factory=Reliability)
    transitions: int = 0
    tied: int = 0

    def walked(self, entry: DraftedEntry, made: Walk, fresh: Stale) -> None:
        """The engine's observer."""
        sequence = entry.sequence
        length = len(sequence.root)
        index = sequence.start // length - len(sequence.request.prompt_ids) // length
        drafted = len(entry.states) > 1
        counts = self.blocks[index]
        counts.rounds += 1
        counts.drafted_rounds += drafted
        counts.accepted += made.accepted
        if sequence.stale is None:
            return
        self._staleness(counts, sequence, sequence.stale, made.moves[0])
        if drafted and made.end is None:
            self._masses(entry, made)
            self._rejection(sequence, sequence.stale, entry, made)

    def finished(self, *, transitions: int, tied: int) -> None:
        """A sample is done: the transitions that it made, and those that a tie break settled."""
        self.transitions += transitions
        self.tied += tied

    def report(self) -> dict[str, Any]:
        """All figures, as JSON takes them; None where nothing was seen."""
        return {
            "blocks": [{"block": i, **self.blocks[i].row()} for i in sorted(self.blocks)],
            "first_rejections": self.rejections.row(),
            "masses": self.masses.rows(),
            "mass_calibration_error": self.masses.error(),
            "transitions": self.transitions,
            "tied_share": _share(self.tied, self.transitions),
        }

    def _staleness(
        self, counts: BlockCounts, sequence: DraftedSequence, stale: Stale, move: Move
    ) -> None:
        """Does the surest position of the round before commit next, and is its token still right?

        The token is judged where something commits: there alone the truth is known.
        """
        positions = np.array([c.position for c in move]) - sequence.start
        doubts = np.where(sequence.root == self.mask_id, stale.doubts.astype(np.float32), np.inf)
        counts.stale_roots += 1
        counts.leader_next += int(doubts.argmin()) in positions
        counts.commits += len(move)
        tokens = np.array([c.token for c in move])
        counts.token_right += int((stale.tokens[positions, 0] == tokens).sum())

    def _masses(self, entry: DraftedEntry, made: Walk) -> None:
        """Predicted mass of every evaluated draft, and whether it was accepted."""
        accepted = {entry.states[i].tobytes() for i in made.path[1:]}
        full = made.root if made.crossed is None else made.crossed
        accepted.add(full.tobytes())  # the next root itself is no draft unless it is full
        for state, mass in zip(entry.drafts.states, entry.drafts.masses, strict=False):
            name = state.tobytes()
            if name in entry.stored or (state == self.mask_id).any():
                self.masses.add([float(mass)], hits=[name in accepted])

    def _rejection(
        self, sequence: DraftedSequence, stale: Stale, entry: DraftedEntry, made: Walk
    ) -> None:
        """The first successor that was not drafted, against the drafter's first choice."""
        if made.crossed is not None or not (made.root == self.mask_id).any():
            self.rejections.block_end += 1
            return
        request = DraftRequest(
            root=sequence.root,
            stale=stale,
            start=sequence.start,
            key=sequence.request.key,
            budget=0,
            step=sequence.step,
        )
        last = entry.states[made.last]
        truth = successor(last, made.moves[-1], start=request.start)
        guess = self.choose(request, last, made.accepted)
        if ((guess != last) != (truth != last)).any():
            self.rejections.position_miss += 1
        elif (guess != truth).any():
            self.rejections.token_miss += 1
        else:
            self.rejections.out_of_nodes += 1


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
