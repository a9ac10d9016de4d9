import json
import platform
from pathlib import Path

import pytest

from benchmarks.document import DocumentError, read_document, write_document
from benchmarks.machine import describe_machine
from tests.benchmarks.builders import document, row

NAMED = ["protocol", "rule", "tau", "temperature", "method", "budget", "options", "samples"]
COUNTED = ["nfe", "transitions", "reduction", "accepted_per_round", "positions", "wall_ratio"]


def test_a_result_is_read_as_written(tmp_path: Path) -> None:
    options = {"merged": False, "hedge_below": 0.0, "full_drafts": "drop"}
    written = document(row("spot", 8, [4, 6], options=options), row("chain", 8, [9]))
    write_document(written, tmp_path / "result.json")
    assert read_document(tmp_path / "result.json") == written


def test_the_file_holds_a_machine_and_rows_with_the_named_keys(tmp_path: Path) -> None:
    write_document(document(row("spot", 8, [4])), tmp_path / "result.json")
    found = json.loads((tmp_path / "result.json").read_text())
    assert list(found) == ["machine", "rows"]
    assert {*NAMED, *COUNTED, "identical", "drafter_seconds_share"} <= set(found["rows"][0])


def test_a_missing_result_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"none\.json is missing: make it with"):
        read_document(tmp_path / "none.json")


def test_a_wrong_result_names_the_field(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_document(document(row("spot", 8, [4])), path)
    path.write_text(path.read_text().replace('"early_stop"', '"late_stop"'))
    with pytest.raises(DocumentError, match=r"not a benchmark result \(rows\.0\.protocol"):
        read_document(path)


def test_the_machine_is_described_without_its_name(repository: Path) -> None:
    machine = describe_machine()
    text = machine.model_dump_json()
    assert machine.processor
    assert machine.cores > 0
    assert machine.memory_gib > 0
    assert platform.node() not in text
    assert "/" not in text
