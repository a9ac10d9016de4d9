"""Drivers that died without progress, told apart from those that drained or got on."""

import pytest

from jobs.driver.epochs import crash_loop_message, num_barren_drivers
from manifests.records import Presence


def presence(before: int, *, finished: bool = False) -> Presence:
    return Presence(
        epoch="e",
        host="h",
        pid=1,
        updated="2026-01-01T00:00:00+00:00",
        shards_before=before,
        shards_done=before,
        shards_total=9,
        rows_done=0,
        samples_ok=0,
        samples_error=0,
        tokens=0,
        nfe=0,
        rate_tokens_s=0.0,
        workers=0,
        finished=finished,
    )


@pytest.mark.parametrize(
    ("presences", "num_committed", "expected"),
    [
        ([], 0, 0),
        ([presence(0)] * 3, 0, 3),
        ([presence(0)] * 3, 1, 0),  # the last one got on, whatever its presence says
        ([presence(0), presence(0), presence(2), presence(2)], 2, 2),
        ([presence(2), presence(2, finished=True), presence(2)], 2, 1),
        ([presence(2)] * 4 + [presence(2, finished=True)], 2, 0),
    ],
)
def test_barren_drivers_in_a_row_are_counted_from_the_last_one(
    presences: list[Presence], num_committed: int, expected: int
) -> None:
    assert num_barren_drivers(presences, num_committed=num_committed) == expected


def test_a_crash_loop_names_the_setting_that_ends_it() -> None:
    assert crash_loop_message(4, limit=5) is None
    message = crash_loop_message(5, limit=5)
    assert message is not None
    assert "the last 5 drivers" in message
    assert "raise retry.max_barren_drivers (now 5)" in message
