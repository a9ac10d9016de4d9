"""Whom the policy is asked about when a round ends."""

import numpy as np

from spot.limits import Ending
from spot.verification import Walk
from workers.drafting import masked_behind

MASK_ID = 9


def _walk(root: list[int], *, end: Ending | None = None) -> Walk:
    return Walk(root=np.array(root), last=0, moves=[], path=[], end=end)


def test_only_what_goes_on_inside_its_block_has_positions_to_fill() -> None:
    done = Ending(end=1, reason="stop")
    walks = [
        _walk([1, MASK_ID]),
        _walk([1, MASK_ID], end=done),
        _walk([1, 2]),
        _walk([MASK_ID] * 2),
    ]
    assert masked_behind(walks, mask_id=MASK_ID) == [1, 0, 0, 2]
    assert masked_behind([], mask_id=MASK_ID) == []
