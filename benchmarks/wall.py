"""Seconds against draft-free decoding, one sample at a time, with the machine to ourselves.

Draft-free decoding is measured again between every two settings; a ratio takes the mean of the runs
before and after, since machines drift.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from benchmarks.decode import decode
from benchmarks.document import Row
from benchmarks.recipes import drafter_of, resolved
from benchmarks.settings import DRAFT_FREE, Setting
from benchmarks.workload import Loaded, Workload, load
from spot.drafters.base import Drafter, DraftRequest, Drafts

NUM_PROMPTS = 8

Clock = Callable[[], float]


class TimedDrafter:
    """A drafter whose own seconds are counted."""

    def __init__(self, drafter: Drafter, *, clock: Clock) -> None:
        self._drafter, self._clock = drafter, clock
        self.seconds = 0.0

    def propose(self, requests: list[DraftRequest]) -> list[Drafts]:
        """See ``Drafter.propose``."""
        began = self._clock()
        drafts = self._drafter.propose(requests)
        self.seconds += self._clock() - began
        return drafts


class Wall(NamedTuple):
    """Seconds of all samples, and how many of them were the drafter's."""

    seconds: float
    drafter_seconds: float


def with_walls(
    settings: Sequence[Setting],
    rows: Sequence[Row],
    workload: Workload,
    *,
    progress: Callable[[str], None],
    clock: Clock = time.perf_counter,
) -> list[Row]:
    """The rows, with wall ratios where a setting asks for one."""
    loaded, done, before = load(workload), list(rows), dict[str, float]()
    for index, setting in enumerate(settings):
        if not setting.timed:
            continue
        free = replace(setting, method=DRAFT_FREE, budget=0, options={})
        if setting.control not in before:
            run(free, loaded, workload, clock=clock)  # the first run is slower
            before[setting.control] = run(free, loaded, workload, clock=clock).seconds
        wall = run(setting, loaded, workload, clock=clock)
        after = run(free, loaded, workload, clock=clock).seconds
        done[index] = timed(rows[index], wall, draft_free=(before[setting.control] + after) / 2)
        before[setting.control] = after
        progress(f"wall {setting}: {done[index].wall_ratio:.2f}x as fast")
    return done


def timed(row: Row, wall: Wall, *, draft_free: float) -> Row:
    """The row with what was measured beside it."""
    share = wall.drafter_seconds / wall.seconds
    ratio = draft_free / wall.seconds
    return row.model_copy(update={"wall_ratio": ratio, "drafter_seconds_share": share})


def run(setting: Setting, loaded: Loaded, workload: Workload, *, clock: Clock) -> Wall:
    """Decode the first prompts one after the other."""
    setting = resolved(setting, workload)
    drafter = drafter_of(setting, workload, mask_id=loaded.target.spec.mask_id, moves={})
    watched = None if drafter is None else TimedDrafter(drafter, clock=clock)
    began = clock()
    decode(loaded, setting, drafter=watched, num_samples=NUM_PROMPTS, batch=1)
    return Wall(clock() - began, 0.0 if watched is None else watched.seconds)
