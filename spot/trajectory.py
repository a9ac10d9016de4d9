"""What decoding one sample leaves: its transitions in order, its output, and what it cost."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from spot.limits import Ending


class Commit(NamedTuple):
    """One token into one position."""

    position: int  # absolute
    token: int
    confidence: float  # of the position, natural log
    log_probability: float  # of the token, untempered, natural log


Move = tuple[Commit, ...]
"""One transition: the commits that it makes together, by position; a single one when strict."""


@dataclass(slots=True, kw_only=True)
class Cost:
    """Counters of a sample; see design "Counting"."""

    nfe: int = 0  # denoise forwards in which one of its states was evaluated
    nfe_prefill: int = 0
    nfe_store: int = 0
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    positions: int = 0  # positions computed, prefill and stores included
    tied: int = 0  # transitions that a tie break settled


@dataclass(slots=True, kw_only=True)
class Trajectory:
    """A sample's whole trajectory; a fixed function of target, prompt, parameters and key."""

    prompt_tokens: int
    moves: list[Move] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)

    @property
    def transitions(self) -> int:
        """Transitions made, which is the draft-free number of forwards."""
        return len(self.moves)

    @property
    def commits(self) -> list[Commit]:
        """All commits in order."""
        return [commit for move in self.moves for commit in move]

    @property
    def steps(self) -> list[int]:
        """The number of the transition that made each commit."""
        return [step for step, move in enumerate(self.moves) for _ in move]

    def output(self, ending: Ending) -> tuple[int, ...]:
        """The output token ids, stop id excluded."""
        by_position = {c.position: c.token for c in self.commits}
        return tuple(by_position[p] for p in range(self.prompt_tokens, ending.end))


class Decoded(NamedTuple):
    """A finished sample."""

    token_ids: tuple[int, ...]
    finish_reason: Literal["stop", "length"]
    trajectory: Trajectory
