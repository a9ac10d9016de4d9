"""Drivers that die, again and again, without a new commit record: a crash loop.

A supervisor that starts the driver anew would otherwise do so for ever. Every driver leaves its
presence: how many shards were committed when it began, and whether it said goodbye. One that did
not, and after which no more were committed than before it, was barren.
"""

from collections.abc import Sequence

from manifests.records import Presence


def num_barren_drivers(presences: Sequence[Presence], *, num_committed: int) -> int:
    """Barren drivers in a row, up to the last one. `presences` are in the order of epochs."""
    num_barren = 0
    num_after = num_committed
    for presence in reversed(presences):
        if presence.finished or num_after > presence.shards_before:
            break
        num_barren += 1
        num_after = presence.shards_before
    return num_barren


def crash_loop_message(num_barren: int, *, limit: int) -> str | None:
    """Why not to go on, if so."""
    if num_barren < limit:
        return None
    return (
        f"the last {num_barren} drivers of this job died without one new commit record; see their "
        "logs and failures/ in the job's directory, and raise retry.max_barren_drivers "
        f"(now {limit}) to try again"
    )
