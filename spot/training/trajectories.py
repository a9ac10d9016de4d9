"""Trajectories of draft-free decoding, as drafters are trained on them.

Every state that a block goes through is kept with its own conditionals. A drafter never sees those
of the state it drafts from, only those of the state before: the stale conditionals of the root at
row ``i`` are row ``i - 1``. (Pairing a root with its *own* conditionals would leak the label.)

Legend: M visited states, B blocks, L block length, K stale candidates, N examples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from spot.drafters.base import STALE_TOP

NEVER, PROMPT = -1, -2

_STORED = {
    "start": "<i8",
    "when": "<i2",
    "block": "<i4",
    "step": "<i4",
    "log_probs": "<f2",
    "doubts": "<f2",
}


class SampleTrajectory(NamedTuple):
    """One sample's way through its blocks; rows are ordered by (block, step).

    Rows of positions that are committed in a state are unspecified.
    """

    start: NDArray[np.int64]  # [B], absolute position of each decoded block
    when: NDArray[np.int16]  # [B, L], the block's transition that committed, or NEVER, or PROMPT
    block: NDArray[np.int32]  # [M], index into the B blocks
    step: NDArray[np.int32]  # [M], transitions made in the block before the state
    log_probs: NDArray[np.float16]  # [M, L, K], of the state itself
    doubts: NDArray[np.float16]  # [M, L], likewise

    def to_bytes(self) -> dict[str, bytes]:
        """Each array as raw little-endian bytes."""
        return {name: getattr(self, name).astype(kind).tobytes() for name, kind in _STORED.items()}

    @classmethod
    def from_bytes(cls, stored: Mapping[str, bytes]) -> Self:
        """What ``to_bytes`` made; the sample has at least one block.

        Raises:
            ValueError: the sizes do not fit together.
        """
        flat = {name: np.frombuffer(stored[name], kind) for name, kind in _STORED.items()}
        num_states, when = len(flat["step"]), flat["when"].reshape(len(flat["start"]), -1)
        length = when.shape[1]
        return cls(
            start=flat["start"],
            when=when,
            block=flat["block"].reshape(num_states),
            step=flat["step"],
            log_probs=flat["log_probs"].reshape(num_states, length, STALE_TOP),
            doubts=flat["doubts"].reshape(num_states, length),
        )

    def numbered(self, sample: int) -> "Trajectories":
        """The sample alone, under a number."""
        return Trajectories(
            log_probs=self.log_probs,
            doubts=self.doubts,
            block=self.block.astype(np.int64),
            step=self.step.astype(np.int64),
            when=self.when,
            sample=np.full(len(self.start), sample, np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectories:
    """Visited states of many samples; those of a block stand together, in the order of steps.

    A strict transition commits one position, so that ``when`` is the order of commits; a threshold
    transition commits a set.
    """

    log_probs: NDArray[np.float16]  # [M, L, K], of the state itself
    doubts: NDArray[np.float16]  # [M, L], likewise
    block: NDArray[np.int64]  # [M], index into the B blocks
    step: NDArray[np.int64]  # [M], transitions made in the block before the state
    when: NDArray[np.int16]  # [B, L], the block's transition that committed, or NEVER, or PROMPT
    sample: NDArray[np.int64]  # [B]

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """All states of all parts; block numbers are shifted, sample numbers are kept.

        Raises:
            ValueError: there are no parts, or their block lengths differ.
        """
        shift = np.cumsum([0, *(len(part.when) for part in parts[:-1])])
        blocks = [part.block + by for part, by in zip(parts, shift, strict=True)]
        others = (name for name in cls.__slots__ if name != "block")
        joined = {n: np.concatenate([getattr(part, n) for part in parts]) for n in others}
        return cls(block=np.concatenate(blocks), **joined)

    def select(self, keep_blocks: NDArray[np.bool_]) -> "Trajectories":
        """The states of chosen blocks ([B]); block numbers stay."""
        rows = keep_blocks[self.block]
        return Trajectories(
            log_probs=self.log_probs[rows],
            doubts=self.doubts[rows],
            block=self.block[rows],
            step=self.step[rows],
            when=self.when,
            sample=self.sample,
        )

    def roots(self) -> NDArray[np.int64]:
        """Rows that have stale conditionals, those of the row before: all but the openings."""
        return np.flatnonzero(self.step >= 1)

    def masked_at(self, rows: NDArray[np.int64], step: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Positions that are masked in the rows' blocks after ``step`` transitions, [N, L]."""
        when = self.when[self.block[rows]]
        masked: NDArray[np.bool_] = (when >= step[:, None]) | (when == NEVER)
        return masked


class Examples(NamedTuple):
    """Training examples: a root, the positions of the d transitions after it, the next commit."""

    root: NDArray[np.int64]  # [N], rows of the roots
    depth: NDArray[np.int64]  # [N]
    taken: NDArray[np.bool_]  # [N, L]
    masked: NDArray[np.bool_]  # [N, L], at the root
    label: NDArray[np.int64]  # [N]


def states_at(
    trajectories: Trajectories, roots: NDArray[np.int64], depths: NDArray[np.int64]
) -> tuple[Examples, NDArray[np.int64]]:
    """Examples of any rule, and the rows of the states that their labels are about.

    Pairs whose state was not visited are dropped; ``label`` is the first position that the state's
    transition commits.

    Args:
        trajectories: visited states.
        roots: rows among ``trajectories.roots()``, [N].
        depths: transitions between root and labelled state, [N].
    """
    rows = roots + depths
    inside = np.minimum(rows, len(trajectories.block) - 1)
    visited = (rows == inside) & (trajectories.block[inside] == trajectories.block[roots])
    roots, depths, rows = roots[visited], depths[visited], rows[visited]
    return _examples(trajectories, roots, depths), rows


def examples_at(
    trajectories: Trajectories, roots: NDArray[np.int64], depths: NDArray[np.int64]
) -> Examples:
    """Examples of strict trajectories; pairs past the end of their block are dropped.

    Args:
        trajectories: where one transition commits one position.
        roots: rows among ``trajectories.roots()``, [N].
        depths: transitions between root and label, [N].
    """
    at = trajectories.step[roots] + depths
    good = (trajectories.when[trajectories.block[roots]] == at[:, None]).any(-1)
    return _examples(trajectories, roots[good], depths[good])


def _examples(
    trajectories: Trajectories, roots: NDArray[np.int64], depths: NDArray[np.int64]
) -> Examples:
    step, when = trajectories.step[roots], trajectories.when[trajectories.block[roots]]
    at = step + depths
    taken = (when >= step[:, None]) & (when < at[:, None])
    masked = trajectories.masked_at(roots, step)
    return Examples(roots, depths, taken, masked, (when == at[:, None]).argmax(-1))
