"""A target that several processes hold together; this one is rank 0 and leads the others.

The other ranks are child processes that end when this one does. To its user it is a target like any
other: each operation is announced over the children's pipes and carried out by all.
"""

import json
import subprocess
import sys
import tempfile
import weakref
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Self, Unpack

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist

from spot.attention import KVPages
from spot.targets.base import Unit
from spot.targets.checkpoint import read_config, spec_of
from spot.targets.families import family_of
from spot.targets.family import TargetError
from spot.targets.files import CONFIG
from spot.targets.loading import Loaded, Options, load
from spot.targets.native import native_settings
from spot.targets.paged import PagedTarget
from spot.targets.parallel.messages import Message, Operation, pack_units, send
from spot.targets.parallel.ranks import Ranks, join, leave
from spot.targets.parallel.sharding import check_divisible

LEAVE_S = 10.0  # how long the children may take to end when told to


class ParallelTarget(PagedTarget):
    """Rank 0 of a shared target; one per process, since ranks meet once."""

    def __init__(
        self, loaded: Loaded, ranks: Ranks, children: list[subprocess.Popen[bytes]]
    ) -> None:
        super().__init__(loaded)
        self._ranks, self._children = ranks, children
        self._numbers: weakref.WeakKeyDictionary[KVPages, int] = weakref.WeakKeyDictionary()
        self._freed: deque[int] = deque()
        self._num_pools = 0

    @classmethod
    def start(
        cls, path: str | Path, *, size: int, threads: int, **options: Unpack[Options]
    ) -> Self:
        """Start ``size - 1`` child processes and load a part of the target in each, and here.

        Raises:
            TargetError: as ``loading.load``; or the target cannot be shared between so many.
        """
        if not spec_of(path, block_length=options.get("block_length")).exact_prefix:
            raise TargetError(
                f"{path}: bidirectional targets are computed on one device: set "
                "cluster.tensor_parallel to 1"
            )
        family = family_of(read_config(Path(path)), path=Path(path) / CONFIG)
        check_divisible(native_settings(family, Path(path)), size)  # before anybody is started
        options = {"device": "cpu", **options}
        with tempfile.TemporaryDirectory(prefix="spotbatch-ranks-") as folder:
            meeting = Path(folder) / "meeting"
            children = [
                _start(path, rank, size=size, meeting=meeting, threads=threads, options=options)
                for rank in range(1, size)
            ]
            try:
                ranks = join(meeting, rank=0, size=size, device=options["device"])
                return cls(load(path, ranks=ranks, **options), ranks, children)
            except BaseException:
                if dist.is_initialized():
                    leave()
                _end(children)
                raise

    def new_pages(self, num_pages: int) -> KVPages:
        """An empty pool; every rank has its own heads of each page."""
        self._num_pools, number = self._num_pools + 1, self._num_pools
        self._tell("pages", np.array([number, num_pages]))
        pages = super().new_pages(num_pages)
        self._numbers[pages] = number
        weakref.finalize(pages, self._freed.append, number)
        return pages

    def hidden(self, units: list[Unit], pages: KVPages) -> Tensor:
        """Final hidden states [U, L, E]; see ``Target.hidden``."""
        self._tell("hidden", np.array([self._numbers[pages]]), *pack_units(units))
        return super().hidden(units, pages)

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden rows [R, E] to logits [R, V]."""
        self._tell("logits", np.array(hidden.shape))
        with torch.inference_mode():
            rows = self._ranks.from_first(hidden.contiguous())
        return super().logits(rows)

    def close(self) -> None:
        """End the children; the target cannot be used any more."""
        self._tell("stop")
        leave()
        _end(self._children)

    def _tell(
        self, operation: Operation, *arrays: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    ) -> None:
        freed = [self._freed.popleft() for _ in range(len(self._freed))]
        messages = [Message("free", (np.array(freed, np.int64),))] if freed else []
        for child in self._children:
            assert child.stdin is not None, "started with a pipe"
            for message in (*messages, Message(operation, arrays)):
                send(child.stdin, message)  # type: ignore[arg-type]


def _start(
    path: str | Path, rank: int, *, size: int, meeting: Path, threads: int, options: Options
) -> subprocess.Popen[bytes]:
    settings = {
        "path": str(Path(path).resolve()),
        "rank": rank,
        "size": size,
        "meeting": str(meeting),
        "threads": threads,
        "options": options,
    }
    # -P: a folder of the same name as a package, where the job runs, must not be imported
    command = [sys.executable, "-P", "-m", "spot.targets.parallel.rank", json.dumps(settings)]
    return subprocess.Popen(command, stdin=subprocess.PIPE)  # noqa: S603 - our own module


def _end(children: list[subprocess.Popen[bytes]]) -> None:
    """Close the pipes, which ends a child, and wait."""
    for child in children:
        if child.stdin is not None:
            with suppress(BrokenPipeError):  # it ended by itself
                child.stdin.close()
    for child in children:
        try:
            child.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
