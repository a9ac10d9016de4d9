"""Looking on while samples are decoded: what is seen of a round, and the bookkeeping by block.

``spot`` does not know the engine; these are the parts of its rounds that recorders look at.
"""

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from spot.drafters.base import DraftRequest, Stale
from spot.targets.base import State
from spot.trajectory import Move
from spot.verification import Walk


class SeenRequest(Protocol):
    """What was asked for, as far as it is looked at."""

    @property
    def key(self) -> int:
        """Sample key."""


class SeenSequence(Protocol):
    """A sample between two rounds, as far as it is looked at."""

    @property
    def request(self) -> SeenRequest:
        """What was asked for."""

    @property
    def root(self) -> State:
        """The root of the round."""

    @property
    def stale(self) -> Stale | None:
        """None when a block opens."""

    @property
    def start(self) -> int:
        """Absolute position of the block."""


class SeenEntry(Protocol):
    """A sample's part of a round, as far as it is looked at."""

    @property
    def sequence(self) -> SeenSequence:
        """The sample."""


class OpenBlock(Protocol):
    """A block being decoded."""

    start: int


Block = TypeVar("Block", bound=OpenBlock)


class BlockRecorder(ABC, Generic[Block]):
    """Looks on at draft-free rounds, and keeps apart the blocks of samples that are in flight."""

    def __init__(self) -> None:
        self._blocks: dict[int, Block] = {}

    def walked(self, entry: SeenEntry, made: Walk, fresh: Stale) -> None:
        """The engine's observer."""
        sequence = entry.sequence
        (move,) = made.moves  # drafts would hide the stale conditionals of the states between
        start = sequence.start
        self.observe(
            sequence.request.key, start=start, root=sequence.root, stale=sequence.stale, move=move
        )

    def observe(
        self, key: int, *, start: int, root: State, stale: Stale | None, move: Move
    ) -> None:
        """One round of one sample.

        Args:
            key: sample key.
            start: absolute position of the block.
            root: int64 [L].
            stale: None when the block opens; nothing could be drafted there.
            move: the transition that the root makes.
        """
        block = self._blocks.get(key)
        if block is None or block.start != start:
            self._close(key)
            block = self._blocks[key] = self._open(start)
        request = None
        if stale is not None:
            request = DraftRequest(root=root, stale=stale, start=start, key=key, budget=0)
        self._follow(block, request, move)

    def _close_all(self) -> None:
        for key in list(self._blocks):
            self._close(key)

    def _close(self, key: int) -> None:
        block = self._blocks.pop(key, None)
        if block is not None:
            self._end(block)

    @abstractmethod
    def _open(self, start: int) -> Block:
        """A new block."""

    @abstractmethod
    def _follow(self, block: Block, request: DraftRequest | None, move: Move) -> None:
        """A root of the block, where drafts could be asked for, and the transition it makes."""

    @abstractmethod
    def _end(self, block: Block) -> None:
        """The block's last roots will see no more transitions."""
