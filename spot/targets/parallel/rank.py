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

from spot.attention import KVPages
from spot.numerics import set_threads
from spot.targets.loading import load
from spot.targets.paged import PagedTarget
from spot.targets.parallel.messages import Message, receive, unpack_units
from spot.targets.parallel.ranks import Ranks, join, leave

Orders = SimpleQueue[Message]


def _read_orders(orders: Orders) -> None:
    while (message := receive(sys.stdin.buffer)) is not None:
        orders.put(message)
        if message.operation == "stop":
            return
    os._exit(1)  # the first rank is gone; a collective would wait for it


class Follower:
    """Carries out the first rank's orders on this rank's part."""

    def __init__(self, target: PagedTarget, ranks: Ranks) -> None:
        self._target, self._ranks = target, ranks
        self._pools: dict[int, KVPages] = {}

    def follow(self, orders: Orders) -> None:
        """Until told to stop."""
        while (message := orders.get()).operation != "stop":
            self._carry_out(message)

    def _carry_out(self, message: Message) -> None:
        numbers = message.arrays[0].tolist()
        if message.operation == "pages":
            number, num_pages = numbers
            self._pools[number] = self._target.new_pages(num_pages)
        elif message.operation == "free":
            for number in numbers:
                del self._pools[number]
        elif message.operation == "hidden":
            self._target.hidden(unpack_units(*message.arrays[1:]), self._pools[numbers[0]])
        else:
            model: Any = self._target.model
            weight = model.model.embed_tokens.weight
            rows = torch.empty(numbers, dtype=weight.dtype, device=weight.device)
            self._target.logits(self._ranks.from_first(rows))


def main() -> None:
    """Load one rank's part and follow."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    orders: Orders = SimpleQueue()
    threading.Thread(target=_read_orders, args=(orders,), daemon=True).start()
    set_threads(settings["threads"])
    device = settings["options"]["device"]
    if torch.device(device).type == "cuda":
        torch.cuda.set_device(settings["rank"])
    ranks = join(
        Path(settings["meeting"]), rank=settings["rank"], size=settings["size"], device=device
    )
    loaded = load(settings["path"], ranks=ranks, **settings["options"])
    Follower(PagedTarget(loaded), ranks).follow(orders)
    leave()


if __name__ == "__main__":
    main()
