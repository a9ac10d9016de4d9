"""Which workers take too long: pure comparisons of what was heard with the limits."""

from typing import NamedTuple

from schedulers.crew import Lease, Member
from schedulers.events import Cause
from schedulers.limits import Limits


class Overdue(NamedTuple):
    """Why a worker has to be ended."""

    cause: Cause
    message: str


def overdue(member: Member, *, limits: Limits, now: float) -> Overdue | None:
    """Whether the worker has to be ended now.

    A worker that was only asked for may wait for a place as long as the run goes on; see
    `Limits.start_timeout_s`.
    """
    if member.state == "starting":
        return _late(now - member.since, limits.starting_s, "did not become ready")
    if member.state not in ("ready", "parked"):
        return None
    silent = _late(now - member.heard, limits.lease_s, "did not answer")
    return silent or _stuck(member, limits=limits, now=now)


def _stuck(member: Member, *, limits: Limits, now: float) -> Overdue | None:
    for lease in member.leases.values():
        limit_s = limits.decoding_s if lease.phase == "decoding" else limits.publishing_s
        if now - lease.moved > limit_s:
            return Overdue(_blame(lease), f"made no progress in {lease.phase} for {limit_s:g} s")
    return None


def _blame(lease: Lease) -> Cause:
    """Rows are decoded; reading and publishing are up to storage, and arriving to Ray."""
    return "stuck" if lease.phase == "decoding" else "infrastructure"


def _late(waited_s: float, limit_s: float, what: str) -> Overdue | None:
    if waited_s <= limit_s:
        return None
    return Overdue("infrastructure", f"{what} within {limit_s:g} s")
