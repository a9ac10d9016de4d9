"""Shard numbers as people write them: `1-2,5,10-99`."""

import re
from collections.abc import Iterable

from jobs.errors import JobError

_PART = re.compile(r"(\d{1,8})(?:-(\d{1,8}))?")


def format_ranges(shards: Iterable[int]) -> str:
    """The numbers in ascending order, runs of them as first-last; empty text for none."""
    runs: list[list[int]] = []
    for shard in sorted(set(shards)):
        if runs and shard == runs[-1][1] + 1:
            runs[-1][1] = shard
        else:
            runs.append([shard, shard])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def parse_ranges(text: str) -> list[int]:
    """The numbers that `1-2,5` names, ascending and once each; raises `JobError`."""
    shards: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise JobError(f"`{text}` does not name shards; write them as in 1-2,5,10-99")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise JobError(f"`{part.strip()}` runs backwards; write {last}-{first}")
        shards.update(range(first, last + 1))
    return sorted(shards)
