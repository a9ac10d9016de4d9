"""Asking a driver to stop, from anywhere that can write to the job's storage."""

import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal, get_args

from manifests.documents import encode
from manifests.errors import RefusedError
from manifests.journal import read_presences
from manifests.keys import CONTROL_PREFIX, control_key
from manifests.records import Control
from manifests.store.base import Store

Request = Literal["drain", "cancel"]


def ask_drivers(store: Store, request: Request) -> list[str]:
    """Ask every driver that has not said goodbye; their epochs, none if no driver runs.

    A driver that died without a word is asked too, since clocks of two machines cannot tell it from
    one that is slow; nobody reads that.
    """
    epochs = [presence.epoch for presence in read_presences(store) if not presence.finished]
    for epoch in epochs:
        ask_driver(store, epoch, request)
    return epochs


def ask_driver(store: Store, epoch: str, request: Request) -> None:
    """Ask the driver that has this epoch."""
    control = Control(
        epoch=epoch,
        request=request,
        host=socket.gethostname(),
        pid=os.getpid(),
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )
    with suppress(RefusedError):  # asked before
        store.put_if_absent(control_key(epoch, request), encode(control))


def requests_to(store: Store, epoch: str) -> set[Request]:
    """What was asked of this driver. That the object is there is the request."""
    keys = set(store.list(f"{CONTROL_PREFIX}{epoch}/"))
    return {request for request in get_args(Request) if control_key(epoch, request) in keys}
