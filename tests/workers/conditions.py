"""Waiting for something that another thread or process does, bounded."""

import time
from collections.abc import Callable

LIMIT_S = 120.0
POLL_S = 0.02


def wait_for(condition: Callable[[], bool], *, what: str, limit_s: float = LIMIT_S) -> None:
    """Return as soon as the condition holds; an assertion names what never came."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"waited {limit_s:.0f} s for {what}"
        time.sleep(POLL_S)
