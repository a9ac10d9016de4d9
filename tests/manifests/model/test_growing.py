"""Every state that extending can reach is good; each plausible mistake reaches a bad one."""

import pytest

from tests.manifests.model.growing import DANGLING, Variant, explore, start


@pytest.mark.parametrize(
    ("rows", "at_least"),
    [("xyz", 500), ("xxy", 500), ("xx", 50)],
    ids=["three", "two alike", "one"],
)
def test_extending_has_no_bad_state(rows: str, at_least: int) -> None:
    found = explore(start(*rows, variant=Variant()), Variant())
    assert found.violation is None
    assert found.num_states >= at_least, found.num_states


@pytest.mark.parametrize(
    "variant",
    [
        Variant(shared_name=True),
        Variant(decision_first=True),
        Variant(collects_unnamed=True),
    ],
    ids=["one name, replaced", "the decision first", "what no decision names is garbage"],
)
def test_the_search_finds_what_is_wrong_with(variant: Variant) -> None:
    assert explore(start(*"xy", variant=variant), variant).violation == DANGLING
