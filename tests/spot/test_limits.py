import numpy as np
import pytest

from spot.limits import Ending, Limits, ending

M, STOP = 99, 7


def _ending(block: list[int], *, start: int = 8, **limits: object) -> Ending | None:
    settings = {"prompt_tokens": 8, "max_tokens": 16, "stop_ids": frozenset({STOP})} | limits
    return ending(
        np.array(block),
        start=start,
        mask_id=M,
        limits=Limits(**settings),  # type: ignore[arg-type]
    )


def test_a_stop_counts_once_everything_before_it_is_committed() -> None:
    assert _ending([1, 2, STOP, M]) == Ending(10, "stop")
    assert _ending([1, M, STOP, M]) is None


def test_the_first_stop_ends_the_output() -> None:
    assert _ending([1, STOP, 2, STOP]) == Ending(9, "stop")


def test_a_stop_in_the_prompt_never_counts() -> None:
    assert _ending([1, STOP, 2, M], prompt_tokens=10) is None


def test_a_stop_before_min_tokens_does_not_count() -> None:
    assert _ending([1, STOP, STOP, M], min_tokens=2) == Ending(10, "stop")


def test_a_stop_at_the_last_allowed_position_is_a_stop() -> None:
    assert _ending([1, 2, STOP, M], max_tokens=3) == Ending(10, "stop")


def test_a_stop_past_the_budget_is_cut() -> None:
    assert _ending([1, 2, STOP, M], max_tokens=2) == Ending(10, "length")


def test_the_budget_ends_the_output_in_mid_block() -> None:
    assert _ending([1, 2, M, M], max_tokens=2) == Ending(10, "length")
    assert _ending([1, M, 3, M], max_tokens=2) is None


def test_without_stop_ids_only_the_budget_counts() -> None:
    assert _ending([STOP, STOP, STOP, STOP], stop_ids=frozenset()) is None
    assert _ending([STOP] * 4, start=20, stop_ids=frozenset()) == Ending(24, "length")


@pytest.mark.parametrize("start", [8, 12])
def test_a_full_block_without_a_stop_goes_on(start: int) -> None:
    assert _ending([1, 2, 3, 4], start=start) is None
