"""The first rank and its children: they are started, told what to do, watched, and ended.

All ranks carry out the same operations in the same order. What goes wrong in the middle of one
leaves them out of step, so it ends the target: every such failure is a `RankError`.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist

from spot.targets.loading import Loaded, Options, load
from spot.targets.parallel.messages import Ints, Message, Operation, send
from spot.targets.parallel.ranks import Ranks, join, leave

LEAVE_S = 10.0  # how long the children may take to end when told to
NOTICE_S = 2.0  # from the failure of an operation to the news of the child that caused it
STUCK_S = 20.0  # how long an operation may go on once a rank is gone
EXIT_STUCK = 70
READY = b"ready\n"


class RankError(RuntimeError):
    """A process that holds a part of the target failed or ended; the target is of no use now."""


class Leader:
    """Rank 0's side of a shared target; one per process, since ranks meet once."""

    def __init__(self, children: list[subprocess.Popen[bytes]]) -> None:
        self.children = children
        self._failure: str | None = None
        self._numbers: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
        self._freed: deque[int] = deque()
        self.num_things = 0
        self._watch = Watch(children)

    @classmethod
    def start(
        cls, path: str | Path, *, size: int, threads: int, options: Options
    ) -> tuple[Self, Loaded]:
        """Start ``size - 1`` children, and load a part of the target in each of them and here.

        Raises:
            RankError: a child ended before it could take part.
            TargetError: as ``loading.load``.
        """
        with tempfile.TemporaryDirectory(prefix="spotbatch-ranks-") as folder:
            meeting = Path(folder) / "meeting"
            children = [
                _start(path, rank, size=size, meeting=meeting, threads=threads, options=options)
                for rank in range(1, size)
            ]
            leader = cls(children)
            try:
                leader._await_children()
                ranks = join(meeting, rank=0, size=size, device=options.get("device", "cpu"))
                return leader, load(path, ranks=ranks, **options)
            except BaseException:
                leader.end()
                raise

    def _await_children(self) -> None:
        for rank, child in enumerate(self.children, 1):
            assert child.stdout is not None, "started with a pipe"
            if child.stdout.readline() != READY:
                raise RankError(f"{_ended(rank, child.wait())} before it could join: see its log")

    @contextmanager
    def together(self, operation: Operation, *arrays: Ints) -> Iterator[None]:
        """Carry out an operation in all ranks; this one's part is the body.

        Raises:
            RankError: it failed here, or a rank has ended.
        """
        if self._failure is not None:
            raise RankError(self._failure)
        try:
            with self._watch.working:
                self._tell(operation, *arrays)
                yield
        except Exception as error:
            self._failure = self._watch.why(within_s=NOTICE_S) or (
                f"rank 0 of the target failed ({type(error).__name__}: {error}), and the ranks "
                "that share it are out of step now: a smaller cluster.batch needs less memory"
            )
            raise RankError(self._failure) from error

    def _tell(self, operation: Operation, *arrays: Ints) -> None:
        freed = [self._freed.popleft() for _ in range(len(self._freed))]
        messages = [Message("free", (np.array(freed, np.int64),))] if freed else []
        for child in self.children:
            assert child.stdin is not None, "started with a pipe"
            for message in (*messages, Message(operation, arrays)):
                send(child.stdin, message)  # type: ignore[arg-type]

    def keep(self, thing: object) -> None:
        """Give something that every rank holds a part of the next number; it is freed with it."""
        self._numbers[thing] = self.num_things
        weakref.finalize(thing, self._freed.append, self.num_things)
        self.num_things += 1

    def number_of(self, thing: object) -> int:
        """The number of something that was kept."""
        return self._numbers[thing]

    @torch.inference_mode()
    def share(self, tensor: Tensor) -> Tensor:
        """Send this rank's tensor to the others."""
        return Ranks(rank=0, size=1 + len(self.children)).from_first(tensor.contiguous())

    def close(self) -> None:
        """End the children; the target cannot be used any more."""
        if self._failure is None:
            with suppress(BrokenPipeError):
                self._tell("stop")
        self.end()

    def end(self) -> None:
        """Close the pipes, which ends a child, and wait."""
        self._watch.is_over = True
        if dist.is_initialized():
            leave()
        for child in self.children:
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):  # it ended by itself
                        pipe.close()
        for child in self.children:
            try:
                child.wait(LEAVE_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


class Watch:
    """Notices which child ended first, since the others may follow it.

    Some backends wait for a rank that is gone and raise nothing. Where an operation does not end
    soon after its rank, the process is ended with a sentence instead.
    """

    def __init__(
        self, children: list[subprocess.Popen[bytes]], *, stuck_s: float = STUCK_S
    ) -> None:
        self.working = threading.Lock()  # held during operations
        self.is_over = False
        self._stuck_s = stuck_s
        self._ended: deque[str] = deque()
        self._has_news = threading.Event()
        for rank, child in enumerate(children, 1):
            threading.Thread(target=self._wait_for, args=(rank, child), daemon=True).start()

    def _wait_for(self, rank: int, child: subprocess.Popen[bytes]) -> None:
        self._ended.append(_ended(rank, child.wait()))
        self._has_news.set()
        if self.is_over:
            return
        if self.working.acquire(timeout=self._stuck_s):
            self.working.release()
            return
        message = f"{self.why(within_s=0.0)}; an operation still waits for it"
        print(message, file=sys.stderr, flush=True)
        os._exit(EXIT_STUCK)

    def why(self, *, within_s: float) -> str | None:
        """Which rank ended first, and how; None if all are there and stay so long."""
        if not self._has_news.wait(within_s):
            return None
        return f"{self._ended[0]}, and the target with it: see the log of its process"


def _ended(rank: int, status: int) -> str:
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with exit status {status}"
    return f"rank {rank} of the target ended {how}"


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
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe)  # noqa: S603 - our own module
