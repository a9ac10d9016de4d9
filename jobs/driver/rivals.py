"""Other drivers of the same job: two are safe, and only one is of use.

A driver that has not said goodbye may be dead. One of this host is dead if its process is gone;
of any other, and where process ids may have been given anew, only its presence tells: it changes
every few seconds while the driver lives. No clocks are compared.
"""

import os
import socket
import time
from collections.abc import Callable

import psutil

from jobs.driver.errors import RivalDriverError
from manifests.control import ask_driver
from manifests.journal import read_presences
from manifests.records import Presence
from manifests.store.base import Store

WATCH_S = 5.0  # more than twice the time between two changes


def settle_rivals(
    store: Store, *, take_over: bool, sleep: Callable[[float], object] = time.sleep
) -> None:
    """Raise `RivalDriverError` where another driver runs, or with `take_over` end it."""
    rivals = living_rivals(store, sleep=sleep)
    for rival in rivals:
        if not take_over:
            raise RivalDriverError(
                f"driver {rival.epoch} (process {rival.pid} on {rival.host}) runs this job "
                "already; stop it with `spotbatch drain`, or run with --take-over to end it"
            )
        ask_driver(store, rival.epoch, "cancel")


def living_rivals(store: Store, *, sleep: Callable[[float], object]) -> list[Presence]:
    """What the drivers that live said last. Waits a few seconds where only that can tell."""
    suspected = [said for said in read_presences(store) if not said.finished and _may_live(said)]
    if not suspected:
        return []
    sleep(WATCH_S)
    updated = {said.epoch: said.updated for said in suspected}
    return [
        said
        for said in read_presences(store)
        if not said.finished and updated.get(said.epoch, said.updated) != said.updated
    ]


def _may_live(said: Presence) -> bool:
    if said.host != socket.gethostname():
        return True
    return said.pid != os.getpid() and psutil.pid_exists(said.pid)
