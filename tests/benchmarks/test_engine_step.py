"""The step script, with tiny shapes on the CPU."""

import json
from pathlib import Path

import pytest

from benchmarks.batching.clocks import read_clock
from benchmarks.engine_step import DRAFTER, TINY, Part, cost_table, main


def test_every_part_of_every_size_is_measured_and_written(tmp_path: Path) -> None:
    file, table = tmp_path / "step.json", tmp_path / "here.json"
    arguments = ["--tiny", "--pages", "2", "--units", "1", "--units", "3"]
    assert main([*arguments, "--json", str(file), "--table", str(table)]) == 0
    found = json.loads(file.read_text())["parts"]
    assert len(found) == 2 * 7
    assert all(part["seconds"] >= 0.0 and part["flops"] > 0 for part in found)
    measured = read_clock(str(table))
    assert measured.source == "measured"
    assert measured.positions == (8.0, 24.0)


def test_the_roofline_is_the_slower_of_arithmetic_and_memory() -> None:
    part = Part(1, "x", 1.0, flops=2e12, bytes=3e9)
    assert part.roofline_s(tflops=1.0, gb_per_s=1.0) == pytest.approx(3.0)
    assert part.roofline_s(tflops=0.5, gb_per_s=1.0) == pytest.approx(4.0)


def test_the_table_adds_up_the_forward_and_keeps_the_drafter_apart() -> None:
    found = [
        Part(num, name, seconds, 1.0, 1.0)
        for num in (1, 3)
        for name, seconds in (("mlp", 2.0 * num), ("logits", 1.0), (DRAFTER, 0.5 * num))
    ]
    table = cost_table(found, TINY, name="t", note="n")
    assert table.seconds == (3.0, 7.0)
    assert (table.drafter.level_s, table.drafter.draft_s) == (0.5, 0.5)
