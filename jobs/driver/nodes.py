"""The nodes of the cluster: which ones drain, which live, what they have.

The only file that touches Ray's private interface (`_private.state`: draining nodes have no public
one). Where that interface is not as expected, nothing is known to drain: a preemption then costs
the work on the node, as it would without a notice.
"""

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import closing

from schedulers.events import Event, NodeDraining, NodeRestored

REACH_S = 2.0


def draining_nodes() -> dict[str, float | None]:
    """Ray's ids of the draining nodes, with the seconds left; None without a deadline."""
    from ray._private.state import state

    now_ms = time.time() * 1000.0
    return {
        node: (deadline_ms - now_ms) / 1000.0 if deadline_ms else None
        for node, deadline_ms in state.get_draining_nodes().items()
    }


def is_node_alive(node: str) -> bool:
    """Whether the node's raylet takes connections; its entry in Ray's table may be stale."""
    import ray

    for entry in ray.nodes():
        if entry["NodeID"] == node:
            address = (entry["NodeManagerAddress"], entry["NodeManagerPort"])
            return bool(entry["Alive"]) and _takes_connections(address)
    return False


def _takes_connections(address: tuple[str, int]) -> bool:
    try:
        with closing(socket.create_connection(address, timeout=REACH_S)):
            return True
    except OSError:
        return False


def resources_in_words(wanted: Mapping[str, float]) -> str:
    """What a worker needs beside what the cluster has and has free, as one clause."""
    import ray

    total, free = ray.cluster_resources(), ray.available_resources()
    kinds = [
        f"{amount:g} {kind} (cluster: {total.get(kind, 0):g}, free: {free.get(kind, 0):g})"
        for kind, amount in wanted.items()
    ]
    return "a worker needs " + " and ".join(kinds)


class DrainNotices:
    """Turns what is said about draining nodes, again and again, into events."""

    def __init__(self) -> None:
        self._known: dict[str, float | None] = {}

    def __contains__(self, node: str | None) -> bool:
        return node in self._known

    def events(self, draining: Mapping[str, float | None] | None, *, now: float) -> Iterator[Event]:
        """What is new: seconds left become deadlines on the driver's clock."""
        if draining is None:
            return
        for node in self._known.keys() - draining.keys():
            del self._known[node]
            yield NodeRestored(node=node, now=now)
        for node, left_s in draining.items():
            deadline = None if left_s is None else now + left_s
            if node not in self._known or _differs(self._known[node], deadline):
                self._known[node] = deadline
                yield NodeDraining(node=node, deadline=deadline, now=now)


def _differs(before: float | None, after: float | None) -> bool:
    """Two readings of one deadline differ by how long reading took."""
    if before is None or after is None:
        return before is not after
    return abs(after - before) > 1.0


class RayNodes:
    """The cluster that Ray is connected to, for the loop."""

    def draining(self) -> dict[str, float | None] | None:
        """Draining nodes; None while Ray cannot say, or where it has no such interface."""
        import ray

        try:
            return draining_nodes()
        except (ImportError, AttributeError, ray.exceptions.RayError):
            return None

    def is_alive(self, node: str) -> bool:
        """Whether a node lives."""
        return is_node_alive(node)
