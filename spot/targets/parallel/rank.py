"""A child process that holds one rank's part of a target: ``python -m spot.targets.parallel.rank``.

It does what the first rank tells it over its standard input. When that closes, however the first
rank ended, it ends at once, whatever it is doing.
"""

import json
import os
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch

from spot.numerics import set_threads
from spot.targets.base import CacheContext, CanvasUnit
from spot.targets.canvas import NativeCanvasTarget
from spot.targets.loading import load
from spot.targets.paged import PagedTarget
from spot.targets.parallel.leader import READY
from spot.targets.parallel.messages import Message, receive, unpack_canvases, unpack_units
from spot.targets.parallel.ranks import Ranks, join, leave
from spot.targets.registry import target_of

Orders = SimpleQueue[Message]


def _read_orders(orders: Orders) -> None:
    while (message := receive(sys.stdin.buffer)) is not None:
        orders.put(message)
        if message.operation == "stop":
            return
    os._exit(1)  # the first rank is gone; a collective would wait for it


class Follower:
    """Carries out the first rank's orders on this rank's part."""

    def __init__(self, target: PagedTarget | NativeCanvasTarget, ranks: Ranks) -> None:
        self._target, self._ranks = target, ranks
        self._things: dict[int, Any] = {}  # pools of pages, or what was frozen, by their numbers

    def follow(self, orders: Orders) -> None:
        """Until told to stop."""
        while (message := orders.get()).operation != "stop":
            self._carry_out(message)

    def _carry_out(self, message: Message) -> None:
        if message.operation == "logits":
            self._logits(message.arrays[0].tolist())
        elif message.operation == "free":
            for number in message.arrays[0].tolist():
                del self._things[number]
        elif isinstance(self._target, PagedTarget):
            self._on_pages(self._target, message)
        else:
            self._on_canvases(self._target, message)

    def _logits(self, shape: list[int]) -> None:
        model: Any = self._target.model
        weight = model.model.embed_tokens.weight
        rows = torch.empty(shape, dtype=weight.dtype, device=weight.device)
        self._target.logits(self._ranks.from_first(rows))

    def _on_pages(self, target: PagedTarget, message: Message) -> None:
        head, *rest = message.arrays
        if message.operation == "pages":
            number, num_pages = head.tolist()
            self._things[number] = target.new_pages(num_pages)
        else:
            target.hidden(unpack_units(*rest), self._things[int(head[0])])

    def _on_canvases(self, target: NativeCanvasTarget, message: Message) -> None:
        head, *rest = message.arrays
        if message.operation == "open":
            first, suffix = head.tolist()
            context: CacheContext = "prefix+suffix" if suffix else "prefix"
            opened = target.open(unpack_canvases(*rest), context=context)
            self._things |= dict(enumerate(opened, first))
        else:
            target.hidden(
                [
                    CanvasUnit(state=state, opened=self._things[number])
                    for number, state in zip(head.tolist(), rest[0], strict=True)
                ]
            )


def _say_ready() -> None:
    """Tell the first rank, which then stops reading; later output goes where errors go."""
    os.write(1, READY)
    os.dup2(2, 1)


def main() -> None:
    """Load one rank's part and follow."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    orders: Orders = SimpleQueue()
    threading.Thread(target=_read_orders, args=(orders,), daemon=True).start()
    set_threads(settings["threads"])
    _say_ready()
    device = settings["options"]["device"]
    if torch.device(device).type == "cuda":
        torch.cuda.set_device(settings["rank"])
    ranks = join(
        Path(settings["meeting"]), rank=settings["rank"], size=settings["size"], device=device
    )
    target = target_of(load(settings["path"], ranks=ranks, **settings["options"]))
    Follower(target, ranks).follow(orders)
    leave()


if __name__ == "__main__":
    main()
