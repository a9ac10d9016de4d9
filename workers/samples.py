"""What goes into the engine and what comes out: the seam between work and decoding.

Plain values without torch, so that everything around the engine can be tested without a model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """One sample to decode; (shard, row, sample) names it, `key` seeds its noise."""

    shard: int
    row: int
    """Index of the row in its planned shard."""
    sample: int
    prompt_ids: tuple[int, ...]
    key: int
    """The 64-bit sample key."""
    max_tokens: int
    temperature: float | None = None
    """The row's own temperature; None takes the rule's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTrace:
    """Per output token, aligned with the token ids."""

    steps: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    confidences: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitTrace:
    """A sample's trajectory in commit order, commits after the stop included."""

    positions: tuple[int, ...]
    """Absolute positions: the first output token is at the length of the prompt."""
    tokens: tuple[int, ...]
    steps: tuple[int, ...]
    """The number of the transition that committed the token, from 0."""
    log_probabilities: tuple[float, ...]
    confidences: tuple[float, ...]

    @property
    def num_transitions(self) -> int:
        """Transitions made; the commits of one share its number."""
        return self.steps[-1] + 1 if self.steps else 0

    def of_tokens(self, first_position: int, num_tokens: int) -> TokenTrace:
        """The part that belongs to the output tokens, in the order of their positions."""
        index_of = {position: index for index, position in enumerate(self.positions)}
        indices = [index_of[first_position + offset] for offset in range(num_tokens)]
        return TokenTrace(
            steps=tuple(self.steps[index] for index in indices),
            log_probabilities=tuple(self.log_probabilities[index] for index in indices),
            confidences=tuple(self.confidences[index] for index in indices),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleResult:
    """One decoded sample and what it cost."""

    request: SampleRequest
    token_ids: tuple[int, ...]
    """Cut at the stop id, which is not included."""
    finish_reason: FinishReason
    tokens_with_stop: int
    nfe: int
    """Denoise forwards in which one of the sample's states was evaluated."""
    nfe_prefill: int
    nfe_store: int
    transitions: int
    rounds: int
    drafted: int
    accepted: int
    positions: int
    tied: int
    """Transitions that a tie break settled."""
    wall_s: float
    """From admission to finish."""
    queue_s: float
    """From arrival to admission."""
    trace: CommitTrace | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSample:
    """One output row without what its shard adds; counts of an error row are zero."""

    shard: int
    row: int
    sample: int
    key: int
    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    finish_reason: FinishReason | None = None
    tokens_with_stop: int = 0
    prompt_tokens: int = 0
    nfe: int = 0
    nfe_prefill: int = 0
    nfe_store: int = 0
    transitions: int = 0
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    positions: int = 0
    tied: int = 0
    """Transitions that a tie break settled; summed in the commit record only."""
    wall_s: float = 0.0
    queue_s: float = 0.0
    error_class: str | None = None
    error_message: str | None = None
    token_trace: TokenTrace | None = None
    trace: CommitTrace | None = None
    trajectory: Mapping[str, int | bytes] | None = None
    """The trajectory columns of `work: collect`, by name."""

    @property
    def num_tokens(self) -> int:
        """Output tokens without the stop id."""
        return len(self.token_ids or ())
