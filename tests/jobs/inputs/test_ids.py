"""The index of ids: exact in spite of short hashes, and small."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.inputs.ids import IdIndex


@pytest.fixture
def index() -> Iterator[IdIndex]:
    with IdIndex(slots=4) as made:
        yield made


def test_the_first_row_of_an_id_is_remembered(index: IdIndex) -> None:
    found = [index.first_row(name, row) for row, name in enumerate("abcabca")]
    assert found == [0, 1, 2, 0, 1, 2, 0]


def test_it_grows_and_forgets_nothing(index: IdIndex) -> None:
    names = [f"row-{n}" for n in range(5000)]
    assert [index.first_row(name, row) for row, name in enumerate(names)] == list(range(5000))
    assert [index.first_row(name, 9999) for name in names] == list(range(5000))


@given(st.lists(st.text(alphabet="abé", max_size=3), max_size=40))
def test_ids_that_share_a_hash_are_told_apart(names: list[str]) -> None:
    first: dict[str, int] = {}
    with Colliding(slots=4) as index:
        for row, name in enumerate(names):
            assert index.first_row(name, row) == first.setdefault(name, row)


class Colliding(IdIndex):
    """With two hashes for all there is."""

    def _hash(self, data: bytes) -> int:
        return 1 + len(data) % 2
