"""Supervision of one worker: whether it still answers, and whether it still gets on.

A worker is *starting* until it joined. From then on it has to answer heartbeats, and each of its
attempts has to move: decoding moves with every step of the engine, publishing ends. Times are
injected; a verdict is a decision, the pool carries it out.
"""

from dataclasses import dataclass, field
from typing import Literal

from workers.actor import Heartbeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long a worker may take (seconds)."""

    starting_s: float = 900.0
    """From asking for the actor to its being ready: a free place, imports, weights."""
    silence_s: float = 120.0
    """Between answers to heartbeats."""
    decoding_s: float = 900.0
    """Between two steps of the engine; one step may be a large forward on a slow machine."""
    publishing_s: float = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The worker is to be ended; `death` is held against the shards it has."""

    reason: Literal["death", "infrastructure"]
    message: str


@dataclass(slots=True, kw_only=True)
class Watch:
    """What is known of one worker's life."""

    deadlines: Deadlines
    began: float
    _is_joined: bool = False
    _answered: float = 0.0
    _since: dict[tuple[str, str, int], float] = field(default_factory=dict)
    """When each attempt was first seen where it is now: (attempt, phase, steps)."""

    def joined(self, now: float) -> None:
        """The worker is ready."""
        self._is_joined = True
        self._answered = now

    def answered(self, heartbeat: Heartbeat, *, now: float) -> None:
        """A heartbeat came back."""
        self._answered = now
        places = [
            (a.attempt, a.phase, heartbeat.num_steps if a.phase == "decoding" else 0)
            for a in heartbeat.running
        ]
        self._since = {place: self._since.get(place, now) for place in places}

    def verdict(self, now: float) -> Verdict | None:
        """Whether the worker has to be ended now."""
        limits = self.deadlines
        if not self._is_joined:
            return _late(now - self.began, limits.starting_s, "did not become ready")
        silent = _late(now - self._answered, limits.silence_s, "did not answer")
        return silent or self._stuck(now)

    def _stuck(self, now: float) -> Verdict | None:
        for (_, phase, _), since in self._since.items():
            decodes = phase == "decoding"
            limit_s = self.deadlines.decoding_s if decodes else self.deadlines.publishing_s
            if now - since > limit_s:
                message = f"made no progress in {phase} for {limit_s:.0f} s"
                return Verdict(reason="death" if decodes else "infrastructure", message=message)
        return None


def _late(waited_s: float, limit_s: float, what: str) -> Verdict | None:
    if waited_s <= limit_s:
        return None
    return Verdict(reason="infrastructure", message=f"{what} within {limit_s:.0f} s")
