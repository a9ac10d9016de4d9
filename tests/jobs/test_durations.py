"""Time spans, written and read."""

import pytest

from jobs.durations import duration, parse_duration
from jobs.errors import JobError


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (3 * 3600 + 50 * 60 + 7, "3 h 50 min"),
        (3600 + 5, "1 h"),
        (90000, "1 d 1 h"),
    ],
)
def test_the_two_largest_units_are_told(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"), [("3h50m", 13800), ("90s", 90), ("1d12h", 129600), (" 2M ", 120)]
)
def test_units_add_up(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "3", "0s", "50m3h", "-1h", "1.5h", "soon"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(JobError, match="write it as in 3h50m"):
        parse_duration(text)
