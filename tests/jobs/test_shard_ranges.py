"""Shard numbers as text, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import JobError
from jobs.shard_ranges import format_ranges, parse_ranges


def test_runs_are_written_as_first_and_last() -> None:
    assert format_ranges([5, 1, 2, 10, 11, 12, 2]) == "1-2,5,10-12"
    assert format_ranges([]) == ""


@given(st.sets(st.integers(0, 10**6), min_size=1))
def test_what_is_written_is_read_back(shards: set[int]) -> None:
    assert parse_ranges(format_ranges(shards)) == sorted(shards)


def test_ranges_may_overlap_and_have_spaces() -> None:
    assert parse_ranges("3, 1-2,2-4") == [1, 2, 3, 4]


@pytest.mark.parametrize("text", ["", "1-", "a", "1,,2", "-1", "1:3", "999999999"])
def test_what_names_no_shards_is_one_sentence(text: str) -> None:
    with pytest.raises(JobError, match="write them as in 1-2,5,10-99"):
        parse_ranges(text)


def test_a_range_that_runs_backwards_is_named() -> None:
    with pytest.raises(JobError, match="`9-7` runs backwards; write 7-9"):
        parse_ranges("1,9-7")
