"""Nodes that will go, and which of the work there can still end.

| time left | time needed | |
|---|---|---|
| unknown | any | finish |
| within the margin | any | abandon: an upload that cannot end must not begin |
| more | unknown | finish: nothing is known that speaks against it |
| more | fits before the margin | finish |
| more | does not fit | abandon at once, so that another worker begins at once |
"""

from schedulers.assigning import Assigner
from schedulers.crew import Crew, Member
from schedulers.limits import Limits


def can_finish(*, left_s: float | None, needed_s: float | None, margin_s: float) -> bool:
    """Whether to let the attempt go on (seconds)."""
    if left_s is None:
        return True
    usable_s = left_s - margin_s
    return usable_s > 0.0 and (needed_s is None or needed_s <= usable_s)


class DrainingNodes:
    """The nodes of which a notice says that they will go. Notices may be repeated, or withdrawn."""

    def __init__(self, crew: Crew, assigner: Assigner, *, limits: Limits) -> None:
        self._crew = crew
        self._assigner = assigner
        self._limits = limits
        self._deadlines: dict[str, float | None] = {}

    def __contains__(self, node: str | None) -> bool:
        return node in self._deadlines

    def add(self, node: str, *, deadline: float | None) -> None:
        """Its workers take no more shards."""
        self._deadlines[node] = deadline
        for member in self._on(node):
            self._crew.leave(member)

    def remove(self, node: str) -> None:
        """It stays after all."""
        self._deadlines.pop(node, None)
        for member in self._on(node):
            self._crew.stay(member)

    def leavers(self, now: float) -> list[Member]:
        """The workers there that hold nothing which could still end in time."""
        return [
            member
            for node, deadline in self._deadlines.items()
            for member in self._on(node)
            if member.state == "ready" and not self._is_worth_waiting(member, deadline, now)
        ]

    def _on(self, node: str) -> list[Member]:
        return [member for member in self._crew if member.node == node]

    def _is_worth_waiting(self, member: Member, deadline: float | None, now: float) -> bool:
        left_s = None if deadline is None else deadline - now
        needs_s = [self._assigner.remaining_s(lease, now=now) for lease in member.leases.values()]
        margin_s = self._limits.drain_margin_s
        return any(can_finish(left_s=left_s, needed_s=s, margin_s=margin_s) for s in needs_s)
