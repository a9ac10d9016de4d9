"""Targets that several processes hold together; this one is rank 0 and leads the others.

To its user such a target is like any other: each operation is announced to the other ranks and
carried out by all.
"""

from pathlib import Path
from typing import Unpack

import numpy as np
from torch import Tensor

from spot.attention import KVPages
from spot.targets.base import CacheContext, Canvas, CanvasUnit, Opened, Unit
from spot.targets.canvas import NativeCanvasTarget
from spot.targets.checkpoint import read_config
from spot.targets.families import family_of
from spot.targets.files import CONFIG
from spot.targets.loading import Loaded, Options
from spot.targets.native import native_settings
from spot.targets.paged import PagedTarget
from spot.targets.parallel.leader import Leader
from spot.targets.parallel.messages import pack_canvases, pack_states, pack_units
from spot.targets.parallel.sharding import check_divisible


class ParallelPagedTarget(PagedTarget):
    """A shared target with exact prefix pages; every rank has its own heads of each page."""

    def __init__(self, loaded: Loaded, leader: Leader) -> None:
        super().__init__(loaded)
        self.leader = leader

    def new_pages(self, num_pages: int) -> KVPages:
        """An empty pool."""
        with self.leader.together("pages", np.array([self.leader.num_things, num_pages])):
            pages = super().new_pages(num_pages)
        self.leader.keep(pages)
        return pages

    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        """Final hidden states [U, L, E]; see ``Target.hidden``."""
        number = np.array([self.leader.number_of(pages)])
        with self.leader.together("hidden", number, *pack_units(units)):
            return super().hidden(units, pages)

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden rows [R, E] to logits [R, V]."""
        with self.leader.together("logits", np.array(hidden.shape)):
            return super().logits(self.leader.share(hidden))


class ParallelCanvasTarget(NativeCanvasTarget):
    """A shared target that looks both ways; every rank freezes the keys of its own heads."""

    def __init__(self, loaded: Loaded, leader: Leader) -> None:
        super().__init__(loaded)
        self.leader = leader

    def open(self, canvases: list[Canvas], *, context: CacheContext) -> list[Opened]:
        """Evaluate whole canvases; see ``CanvasTarget.open``."""
        head = np.array([self.leader.num_things, int(context == "prefix+suffix")])
        with self.leader.together("open", head, *pack_canvases(canvases)):
            found = super().open(canvases, context=context)
        for opened in found:
            self.leader.keep(opened)
        return found

    def hidden(self, units: list[CanvasUnit]) -> Tensor:
        """Final hidden states [U, L, E]; see ``CanvasTarget.hidden``."""
        numbers = np.array([self.leader.number_of(unit.opened) for unit in units])
        with self.leader.together("states", numbers, pack_states(units)):
            return super().hidden(units)

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden rows [R, E] to logits [R, V]."""
        with self.leader.together("logits", np.array(hidden.shape)):
            return super().logits(self.leader.share(hidden))


ParallelTarget = ParallelPagedTarget | ParallelCanvasTarget


def start_target(
    path: str | Path, *, size: int, threads: int, **options: Unpack[Options]
) -> ParallelTarget:
    """A target shared with ``size - 1`` child processes, which end when this one does.

    Raises:
        RankError: a child ended before it could take part.
        TargetError: as ``loading.load``; or the target cannot be shared between so many.
    """
    family = family_of(read_config(Path(path)), path=Path(path) / CONFIG)
    check_divisible(native_settings(family, Path(path)), size)  # before anybody is started
    options = {"device": "cpu", **options}
    leader, loaded = Leader.start(path, size=size, threads=threads, options=options)
    if family.exact_prefix:
        return ParallelPagedTarget(loaded, leader)
    return ParallelCanvasTarget(loaded, leader)
