"""Looking into storage beside the loop: a slow store must not keep the driver from its workers.

A few threads read and write; what they find comes back to the loop, which alone decides. A fault of
storage is tried again, longer apart each time, and then stops the run with its own words.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from schedulers.events import Event

Value = TypeVar("Value")
Then = Callable[[Any], Iterator[Event]]

NUM_THREADS = 16
PAUSES_S = (0.1, 0.5, 2.0, 5.0)


def patiently(look: Callable[[], Value], *, sleep: Callable[[float], object] = time.sleep) -> Value:
    """Try again when storage is out of order; the last fault passes through."""
    for pause_s in PAUSES_S:
        try:
            return look()
        except OSError:
            sleep(pause_s)
    return look()


@dataclass(frozen=True, slots=True)
class _Look:
    future: "Future[Any]"
    then: Then


class Looks:
    """Work under way in threads, and what follows from each; not for more than one thread."""

    def __init__(self, *, sleep: Callable[[float], object] = time.sleep) -> None:
        self._pool = ThreadPoolExecutor(NUM_THREADS, thread_name_prefix="looks")
        self._looks: deque[_Look] = deque()
        self._sleep = sleep

    @property
    def num_pending(self) -> int:
        """Looks whose end the loop has not been told."""
        return len(self._looks)

    def begin(self, look: Callable[[], Value], then: Callable[[Value], Iterator[Event]]) -> None:
        """Start `look` in a thread; `then` makes events of its value, in the loop's thread."""
        self._looks.append(_Look(self._pool.submit(patiently, look, sleep=self._sleep), then))

    def finished(self) -> Iterator[Event]:
        """The events of all looks that have ended; raises what a look raised."""
        for look in list(self._looks):
            if look.future.done():
                self._looks.remove(look)
                yield from look.then(look.future.result())

    def close(self) -> None:
        """Begin nothing more, and let what is under way end by itself."""
        self._pool.shutdown(wait=True, cancel_futures=True)
