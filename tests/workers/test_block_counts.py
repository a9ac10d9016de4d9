"""Counting by block."""

from workers.block_counts import LAST_BLOCK, BlockCounts


def test_rounds_and_accepted_drafts_add_up_and_late_blocks_go_together() -> None:
    counts = BlockCounts()
    counts.add(0, accepted=2)
    counts.add(0, accepted=1)
    counts.add(LAST_BLOCK + 5, accepted=4)
    assert counts.counters() == {
        "block:0:rounds": 2,
        "block:0:accepted": 3,
        f"block:{LAST_BLOCK}:rounds": 1,
        f"block:{LAST_BLOCK}:accepted": 4,
    }
