"""Every state that the protocol can reach is good; each plausible mistake reaches a bad one."""

import pytest

from tests.manifests.model.explore import explore
from tests.manifests.model.states import Collection, State, Variant, start

THREE = start(0, 0, 0)  # three attempts at the first run
REVISED = start(0, 0, 1, 1)  # two at the first run, of which one may wake up late; two at the next
LATE = start(0, 0, 1)
BOTH = start(0, 1)


@pytest.mark.parametrize(
    ("initial", "collection", "at_least"),
    [
        (THREE, "none", 400),
        (start(0, 0), "recorded", 300),
        (start(0, 0), "sealed", 500),
        (REVISED, "none", 2_000),
        (LATE, "sealed", 2_000),
        (start(0, 1, 1), "superseded", 2_000),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_protocol_has_no_bad_state(
    initial: State, collection: Collection, at_least: int
) -> None:
    found = explore(initial, Variant(collection=collection), alike=True)
    assert (found.violation, found.trace) == (None, ())
    assert found.num_states >= at_least, found.num_states


def test_exchanging_names_hides_nothing() -> None:
    assert explore(start(0, 1), Variant()).num_states > 100
    found = explore(THREE, Variant(collection="unreferenced"), alike=True)
    assert found.violation == DANGLING


DANGLING = "what counts points at nothing, or at other bytes"
MISTAKES = {
    "files that no record names are garbage": (
        THREE,
        Variant(collection="unreferenced"),
        DANGLING,
        "a0 deleted",
    ),
    "an unknown outcome is a failure to clean up after": (
        THREE,
        Variant(collection="none", unknown_is_failure=True),
        DANGLING,
        "a0 deletes its data",
    ),
    "look whether there is a record, then put": (
        THREE,
        Variant(collection="none", check_then_put=True),
        "one of the records was changed",
        "a1 puts its record",
    ),
    "one final name, replaced": (
        THREE,
        Variant(collection="none", shared_name=True),
        DANGLING,
        "a1 puts data",
    ),
    "the attempt id comes from the call": (
        THREE,
        Variant(collection="none", attempt_of_arguments=True),
        DANGLING,
        "a1 puts its record",
    ),
    "the record before the data": (
        THREE,
        Variant(collection="none", record_first=True),
        DANGLING,
        "a0 puts its record",
    ),
    "the seal names what a listing shows": (
        THREE,
        Variant(collection="none", seal_of_listing=True),
        "a seal names what no record names",
        "seal",
    ),
    "a revision replaces the record": (
        BOTH,
        Variant(collection="none", record_in_place=True),
        "a seal names what no record names",
        "seal",
    ),
    "a decision replaces a decision": (
        BOTH,
        Variant(collection="none", decision_replaced=True),
        "the decision was changed",
        "decision y",
    ),
    "the first record tells what is garbage, whatever is open": (
        BOTH,
        Variant(collection="first record"),
        DANGLING,
        "a1 deleted",
    ),
    "files are listed after it was seen what is open": (
        BOTH,
        Variant(collection="revision first"),
        DANGLING,
        "a1 deleted",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_search_finds_what_is_wrong_with(name: str) -> None:
    initial, variant, violation, last_step = MISTAKES[name]
    found = explore(initial, variant)
    assert found.violation == violation
    assert found.trace[-1].startswith(last_step), found.trace
