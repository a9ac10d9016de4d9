"""How long shards take, from those that were committed."""

from schedulers.pace import Pace


def test_nothing_is_expected_before_the_first_commit() -> None:
    pace = Pace()
    assert pace.expected_s(5.0) is None
    assert pace.remaining_s(5.0, age_s=10.0, fraction=0.0) is None


def test_time_is_expected_by_cost_and_one_odd_shard_does_not_move_it() -> None:
    pace = Pace()
    for took_s in (10.0, 1000.0, 10.0):
        pace.committed(5.0, took_s=took_s)
    assert pace.expected_s(10.0) == 20.0


def test_shards_without_a_cost_take_time_too() -> None:
    pace = Pace()
    pace.committed(0.0, took_s=2.0)
    assert pace.expected_s(0.0) == 2.0


def test_what_remains_follows_from_what_is_done() -> None:
    assert Pace().remaining_s(5.0, age_s=10.0, fraction=0.25) == 30.0


def test_without_a_finished_sample_as_much_remains_as_a_fresh_attempt_needs_or_more() -> None:
    pace = Pace()
    pace.committed(1.0, took_s=20.0)
    assert pace.remaining_s(1.0, age_s=5.0, fraction=0.0) == 20.0
    assert pace.remaining_s(1.0, age_s=50.0, fraction=0.0) == 50.0
