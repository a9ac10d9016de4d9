import subprocess
import sys
from typing import Any

import pytest

from benchmarks.document import Options, Row
from benchmarks.report import report
from tests.benchmarks.builders import document, row

FREE = row("draft_free", 0, [12, 12])
DROP: Options = {"full_drafts": "drop"}
THROUGH: Options = {"full_drafts": "look_through"}


def _cells(*rows: Row, heading: str) -> list[list[str]]:
    """The body of the first table under a heading."""
    section = report(document(*rows)).split(f"### {heading}\n")[1].split("\n### ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_the_machine_and_the_date_are_told() -> None:
    text = report(document(FREE))
    assert "2020-02-20 with abacus, 2 cores, 8 GiB memory, torch 2.0, 1 thread" in text


def test_forwards_stand_by_method_and_budget() -> None:
    rows = [FREE, row("spot", 8, [4, 4]), row("spot", 20, [3]), row("spiffy", 8, [6, 6])]
    assert _cells(*rows, heading="Forwards") == [
        ["`draft_free`", "12.0", "-", "-", "2", "yes"],
        ["`spot`", "-", "4.0 (3.00x)", "3.0 (4.00x)", "2, 1", "yes"],
        ["`spiffy`", "-", "6.0 (2.00x)", "-", "2", "yes"],
    ]


def test_protocols_and_temperatures_stand_apart() -> None:
    rows = [FREE, row("draft_free", 0, [12], protocol="ignore_eos", temperature=1.0)]
    text = report(document(*rows))
    assert "`early_stop`, strict, temperature 0:" in text
    assert "`ignore_eos`, strict, temperature 1:" in text


def test_a_row_that_is_not_identical_says_no() -> None:
    lossy = row("greedy", 8, [4], identical=False)
    assert _cells(FREE, lossy, heading="Forwards")[1][-1] == "no"


def test_the_floor_of_spot_gamma_is_told() -> None:
    floored = row("spot_gamma", 8, [4], options={"gamma": 0.1}, gamma=0.1)
    assert _cells(FREE, floored, heading="Forwards")[1][0] == "`spot_gamma` (gamma 0.1)"


def test_the_margin_is_taken_over_the_best_baseline_on_shared_samples() -> None:
    rows = [
        row("spot", 8, [4, 100]),
        row("chain", 8, [8]),
        row("confidence_tree", 8, [5]),
        row("spiffy", 8, [6, 150]),
        row("oracle_position", 8, [3], options=THROUGH),
        row("oracle_position", 8, [1], options=DROP),
    ]
    heading = "SPOT against the best baseline and the position oracle"
    expected = ["8", "`confidence_tree`", "5.0", "4.0", "20.0%", "75%"]
    assert _cells(*rows, heading=heading) == [expected]


def test_without_an_oracle_the_share_is_left_out() -> None:
    heading = "SPOT against the best baseline and the position oracle"
    cells = _cells(row("spot", 8, [4]), row("chain", 8, [8]), heading=heading)
    assert cells[0][-1] == "-"


def test_sets_stand_beside_draft_free_decoding_on_shared_samples() -> None:
    rule: dict[str, Any] = {"rule": "threshold", "tau": 0.9}
    rows = [
        row("draft_free", 0, [12, 100], **rule),
        row("spot_sets", 2, [4], **rule),
        row("sets_stale", 2, [6], **rule),
        row("spot_sets", 3, [3], **rule),
    ]
    assert _cells(*rows, heading="Commit sets under the threshold rule") == [
        ["2", "12.0", "4.0 (3.00x)", "6.0 (2.00x)"],
        ["3", "12.0", "3.0 (4.00x)", "-"],
    ]
    assert "### Forwards" not in report(document(*rows))


def test_a_changed_part_is_compared_on_shared_samples() -> None:
    changed = row("spot", 8, [5], options={"merged": False}, store_forwards=2.0)
    (cells,) = _cells(row("spot", 8, [4, 100]), changed, heading="SPOT with one part changed")
    assert cells == ["`merged=False`", "8", "4.0", "5.0", "+25.0%", "2.0", "100"]


def test_oracles_stand_by_kind_and_options() -> None:
    rows = [
        row("oracle_joint", 8, [3], options=THROUGH),
        row("oracle_joint", 8, [4], options=DROP),
    ]
    assert _cells(*rows, heading="Oracles") == [
        ["`oracle_joint`", "`full_drafts=look_through`", "3.0 (4.00x)"],
        ["`oracle_joint`", "`full_drafts=drop`", "4.0 (3.00x)"],
    ]


def test_seconds_stand_where_they_were_measured() -> None:
    rows = [row("spot", 8, [4], wall_ratio=1.5, drafter_seconds_share=0.25), row("chain", 8, [4])]
    cells = _cells(*rows, heading="Seconds, one sample at a time")
    assert cells == [["`spot`", "8", "1.50x", "25%"]]


@pytest.mark.parametrize("heading", ["Oracles", "Seconds", "SPOT with one part"])
def test_what_was_not_measured_has_no_table(heading: str) -> None:
    assert f"### {heading}" not in report(document(FREE))


def test_reporting_needs_no_torch() -> None:
    code = "import sys, benchmarks.page; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
