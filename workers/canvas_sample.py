"""One sample of a target whose attention looks both ways, while it is decoded."""

from dataclasses import dataclass

import numpy as np

from spot.canvas_decoder import open_canvas
from spot.limits import Limits
from spot.targets.base import Opened, State
from spot.trajectory import Trajectory
from spot.verification import Walk
from workers.samples import SampleRequest
from workers.sequence import Sequence


@dataclass(slots=True, kw_only=True)
class CanvasSample:
    """A sequence with its canvas; its blocks are counted from the prompt's end.

    ``opened`` is what the present block's opening has frozen, None until it is opened.
    """

    sequence: Sequence
    canvas: State
    length: int
    opened: Opened | None = None

    @classmethod
    def enter(
        cls,
        request: SampleRequest,
        *,
        limits: Limits,
        length: int,
        mask_id: int,
        arrived: float,
        now: float,
    ) -> "CanvasSample":
        """A sample before its first block."""
        prompt = np.asarray(request.prompt_ids, np.int64)
        sequence = Sequence(
            request=request,
            limits=limits,
            prompt=prompt,
            arrived=arrived,
            admitted=now,
            trajectory=Trajectory(prompt_tokens=len(prompt)),
            origin=len(prompt),
        )
        canvas = open_canvas(prompt, max_tokens=limits.max_tokens, length=length, mask_id=mask_id)
        sample = cls(sequence=sequence, canvas=canvas, length=length)
        sequence.root = sample._block()
        return sample

    def _block(self) -> State:
        start = self.sequence.start
        return self.canvas[start : start + self.length].copy()

    def open(self, opened: Opened) -> None:
        """The block is open, behind what the opening has frozen."""
        self.opened, self.sequence.frozen = opened, opened.keys[0].shape[1]

    def move_on(self, made: Walk, *, mask_id: int) -> None:
        """Leave the sample where its walk ended; a full block closes, and the next one waits."""
        sequence = self.sequence
        sequence.trajectory.moves += made.moves
        sequence.trajectory.cost.accepted += made.accepted
        sequence.step += len(made.moves)
        sequence.root, sequence.end = made.root, made.end
        if made.end is None and not (made.root == mask_id).any():
            self.canvas[sequence.start : sequence.start + self.length] = made.root
            sequence.block, sequence.step, sequence.stale = sequence.block + 1, 0, None
            sequence.root, self.opened, sequence.frozen = self._block(), None, 0
