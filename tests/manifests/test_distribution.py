"""Whether samples follow the target's distribution: said for every verifier, with the reason."""

from typing import Any

import pytest

from manifests.distribution import distribution_preserving
from tests.manifests.builders import job_spec

DRAWN: dict[str, Any] = {"temperature": 1.0, "draft_budget": 4}


@pytest.mark.parametrize(
    ("decode", "preserving", "words"),
    [
        ({}, True, "target's own transition"),
        (DRAWN, True, "target's own transition"),
        (DRAWN | {"rule": "threshold", "tau": 0.9}, True, "target's own transition"),
        (DRAWN | {"verifier": "uncoupled"}, True, "target's own transition"),
        (DRAWN | {"verifier": "greedy"}, False, "decode.verifier is greedy"),
        ({"verifier": "greedy", "draft_budget": 4}, True, "target's own transition"),
        (DRAWN | {"verifier": "rejection"}, True, "not identical to draft-free ones"),
        (DRAWN | {"numerics": "fast"}, False, "decode.numerics is fast"),
        (DRAWN | {"numerics": "fast", "verifier": "rejection"}, False, "decode.numerics is fast"),
    ],
)
def test_the_settings_say_whether_the_distribution_is_kept_and_why(
    decode: dict[str, Any], preserving: bool, words: str
) -> None:
    said, reason = distribution_preserving(job_spec(drafter={"method": "chain"}, decode=decode))
    assert (said, words in reason) == (preserving, True)


def test_work_without_a_target_keeps_no_distribution() -> None:
    said, reason = distribution_preserving(job_spec(work="null"))
    assert (said, reason) == (False, "work is null, so no target was asked")
