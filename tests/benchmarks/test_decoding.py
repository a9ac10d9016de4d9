from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks import decoding
from benchmarks.document import Row, read_document
from benchmarks.page import tables_of
from benchmarks.report import report
from benchmarks.settings import DRAFT_FREE, STRICT, Setting
from benchmarks.workload import Workload
from tests.benchmarks.builders import row

FREE = Setting(protocol="early_stop", rule=STRICT, method=DRAFT_FREE, budget=0, samples=1)


@pytest.fixture
def drafters(workload: Workload) -> list[str]:
    """Options that name random drafters."""
    chosen = {"drafter": workload.drafter, "sets": workload.sets, "spiffy": workload.spiffy}
    return [word for name, path in chosen.items() for word in (f"--{name}", str(path))]


def _pretend(monkeypatch: pytest.MonkeyPatch, *rows: Row) -> None:
    """Let these rows be what is measured."""

    def measured(*_: Any, **__: Any) -> list[Row]:
        return list(rows)

    def as_they_are(_: Any, found: Sequence[Row], *__: Any, **___: Any) -> Sequence[Row]:
        return found

    monkeypatch.setattr(decoding, "measure_all", measured)
    monkeypatch.setattr(decoding, "with_walls", as_they_are)


def test_a_row_that_differs_is_written_and_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    drafters: list[str],
    tmp_path: Path,
) -> None:
    _pretend(monkeypatch, row("spot", 8, [4], identical=False))
    assert decoding.main(["--json", str(tmp_path / "result.json"), *drafters]) == 1
    assert not read_document(tmp_path / "result.json").rows[0].identical
    expected = "spot (early_stop strict T 0 budget 8) differs from draft-free decoding\n"
    assert capsys.readouterr().err == expected


def test_lossy_verifiers_may_differ(monkeypatch: pytest.MonkeyPatch, drafters: list[str]) -> None:
    lossy = [row(name, 8, [4], identical=False) for name in ("greedy", "rejection_chain")]
    _pretend(monkeypatch, row("spot", 8, [4]), *lossy)
    assert decoding.main(drafters) == 0


def test_a_missing_drafter_is_refused_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert decoding.main(["--drafter", str(tmp_path)]) == 2
    assert "drafter.json is missing" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--samples", "--processes"])
def test_nothing_is_no_number_of_samples_or_processes(
    capsys: pytest.CaptureFixture[str], option: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        decoding.main([option, "0"])
    assert "must be at least 1" in capsys.readouterr().err


@pytest.mark.models
def test_the_command_measures_in_two_processes_and_writes_file_and_page(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    drafters: list[str],
    tmp_path: Path,
) -> None:
    timed = replace(FREE, method="spot", budget=8, timed=True)
    monkeypatch.setattr(decoding, "plan", lambda **_: [timed, FREE])
    monkeypatch.setattr(decoding, "Workload", partial(Workload, max_tokens=16))
    result, page = tmp_path / "result.json", tmp_path / "page.md"
    files = ["--json", str(result), "--markdown", str(page)]
    assert decoding.main([*files, *drafters, "--processes", "2"]) == 0
    spot, free = read_document(result).rows
    assert (spot.method, spot.identical, free.method) == ("spot", True, DRAFT_FREE)
    assert free.wall_ratio is None
    assert spot.wall_ratio is not None
    assert tables_of(page.read_text()) == report(read_document(result))
    told = capsys.readouterr().err.splitlines()
    assert "1/2 early_stop strict T 0 draft_free 0: " in told[0]
    assert "2/2 early_stop strict T 0 spot 8: " in told[1]
    assert "wall early_stop strict T 0 spot 8: " in told[2]
