"""One sample while it is being decoded: its block, its pages, its trajectory."""

from dataclasses import dataclass, field

import numpy as np

from spot.decoder import open_block
from spot.drafters.base import Stale
from spot.limits import Ending, Limits
from spot.targets.base import State
from spot.trajectory import Trajectory
from workers.budget import NOTHING, Ask
from workers.prefix_cache import NO_PAGE, PrefixCache
from workers.samples import CommitTrace, SampleRequest, SampleResult


@dataclass(frozen=True, slots=True, kw_only=True)
class PageWrite:
    """A finished block that this sequence must have written into its page."""

    state: State
    block: int
    page: int
    is_prompt: bool


@dataclass(slots=True, kw_only=True)
class Sequence:
    """State of one sample between rounds."""

    request: SampleRequest
    limits: Limits
    prompt: State
    arrived: float
    admitted: float
    trajectory: Trajectory
    origin: int = 0  # absolute position where block 0 begins
    block: int = 0
    root: State = field(default_factory=lambda: np.empty(0, np.int64))
    stale: Stale | None = None
    ask: Ask = NOTHING  # what may be drafted for the root
    step: int = 0  # transitions made in the block
    frozen: int = 0  # positions outside the open block that it attends to, of a canvas
    pages: list[int] = field(default_factory=list)
    writes: list[PageWrite] = field(default_factory=list)
    end: Ending | None = None

    def enter(self, cache: PrefixCache, *, length: int, mask_id: int) -> None:
        """Hold the prompt's pages and open the first block."""
        for block in range(len(self.prompt) // length):
            self._acquire(cache, self.prompt[block * length :][:length], is_prompt=True)
        self._open(length=length, mask_id=mask_id)

    def finish_block(self, cache: PrefixCache, *, mask_id: int, page: int | None = None) -> None:
        """The root is full: its page joins the prefix and the next block opens.

        Args:
            cache: the pages.
            mask_id: the mask.
            page: the root's page, if it is held and written already.
        """
        length = len(self.root)
        if page is None:
            self._acquire(cache, self.root, is_prompt=False)
        else:
            self.pages.append(page)
        self._open(length=length, mask_id=mask_id)

    def cross(self, page: int) -> None:
        """The walk went through a full block whose page is held and written already."""
        self.pages.append(page)
        self.block, self.stale = len(self.pages), None

    def _acquire(self, cache: PrefixCache, state: State, *, is_prompt: bool) -> None:
        parent = self.pages[-1] if self.pages else NO_PAGE
        page, is_new = cache.acquire(parent, state.tobytes())
        if is_new:
            block = len(self.pages)
            write = PageWrite(state=state, block=block, page=page, is_prompt=is_prompt)
            self.writes.append(write)
        self.pages.append(page)

    def _open(self, *, length: int, mask_id: int) -> None:
        self.block, self.stale, self.step = len(self.pages), None, 0
        start = self.block * length
        self.root = open_block(self.prompt, start, length=length, mask_id=mask_id)

    @property
    def start(self) -> int:
        """Absolute position of the block."""
        return self.origin + self.block * len(self.root)

    @property
    def context(self) -> int:
        """Positions outside the block that it attends to."""
        return len(self.pages) * len(self.root) + self.frozen

    @property
    def prefix_name(self) -> int:
        """The last page, which names the whole prefix."""
        return self.pages[-1] if self.pages else NO_PAGE

    def result(self, *, now: float, traced: bool) -> SampleResult:
        """The finished sample."""
        assert self.end is not None, "the sample is not done"
        cost, ids = self.trajectory.cost, self.trajectory.output(self.end)
        return SampleResult(
            request=self.request,
            token_ids=ids,
            finish_reason=self.end.reason,
            tokens_with_stop=len(ids) + (self.end.reason == "stop"),
            nfe=cost.nfe,
            nfe_prefill=cost.nfe_prefill,
            nfe_store=cost.nfe_store,
            transitions=self.trajectory.transitions,
            rounds=cost.rounds,
            drafted=cost.drafted,
            accepted=cost.accepted,
            positions=cost.positions,
            tied=cost.tied,
            wall_s=now - self.admitted,
            queue_s=self.admitted - self.arrived,
            trace=commit_trace(self.trajectory) if traced else None,
        )


def commit_trace(trajectory: Trajectory) -> CommitTrace:
    """A trajectory as an output row keeps it."""
    commits = trajectory.commits
    return CommitTrace(
        positions=tuple(c.position for c in commits),
        tokens=tuple(c.token for c in commits),
        steps=tuple(trajectory.steps),
        log_probabilities=tuple(c.log_probability for c in commits),
        confidences=tuple(c.confidence for c in commits),
    )
