"""Ending a worker's process ourselves: a frozen one does not hear Ray, and would keep its place."""

import socket
from contextlib import suppress

import psutil

from workers.environment import ProcessIdentity


def kill_if_here(process: ProcessIdentity) -> None:
    """Kill that very process if it lives on this host; else nothing."""
    if process.host != socket.gethostname():
        return
    with suppress(psutil.NoSuchProcess):
        living = psutil.Process(process.pid)
        if living.create_time() == process.created:
            living.kill()
