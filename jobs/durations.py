"""Time spans as people write and read them."""

import re

from jobs.errors import JobError

_UNIT_S = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def duration(seconds: float) -> str:
    """A time span for people: its two largest units."""
    minutes, rest_s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (rest_s, "s")]
    first = next((i for i, (count, _) in enumerate(units) if count), len(units) - 1)
    return " ".join(f"{count} {unit}" for count, unit in units[first : first + 2] if count) or "0 s"


def parse_duration(text: str) -> float:
    """Seconds of a span as in `3h50m`, `90s` or `1d12h`; raises `JobError`."""
    match = _SPAN.fullmatch(text.strip().lower())
    counts = match.groups() if match else ()
    seconds = sum(
        int(count) * unit_s
        for count, unit_s in zip(counts, _UNIT_S.values(), strict=False)
        if count
    )
    if seconds <= 0.0:
        raise JobError(f"`{text}` is not a time span; write it as in 3h50m, 45m or 90s")
    return seconds
