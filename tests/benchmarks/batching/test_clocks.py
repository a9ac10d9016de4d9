"""Cost tables: read by name or from a file, and told apart from measurements."""

import json
from pathlib import Path

import pytest

from benchmarks.batching.clocks import clock_names, read_clock
from benchmarks.document import DocumentError
from workers.costs import ForwardSize


@pytest.mark.parametrize("name", ["h200-8b", "rtx6000ada-8b"])
def test_the_bundled_tables_say_that_they_are_modelled(name: str) -> None:
    table = read_clock(name)
    assert (table.name, table.source) == (name, "modelled")
    assert "not measured" in table.note


def test_forwards_never_get_cheaper_with_more_positions() -> None:
    for name in clock_names():
        cost = read_clock(name).forward_cost()
        seconds = [float(cost(ForwardSize(32.0 * n))) for n in range(1, 100)]
        assert seconds == sorted(seconds)


def test_an_unknown_clock_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(DocumentError, match="no clock h100: name a file or one of h200-8b, rtx"):
        read_clock("h100")


@pytest.mark.parametrize(
    ("change", "said"),
    [({"row_s": -1.0}, "row_s"), ({"positions": [2.0, 1.0]}, "ascend"), ({"more": 1}, "more")],
)
def test_a_file_that_is_no_table_is_refused(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    path = tmp_path / "mine.json"
    table = read_clock("h200-8b").model_dump(mode="json")
    path.write_text(json.dumps(table | {"positions": [1.0, 2.0], "seconds": [1.0, 2.0]} | change))
    with pytest.raises(DocumentError, match=f"not a cost table .*{said}"):
        read_clock(str(path))
