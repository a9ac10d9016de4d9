"""Scoring in a child process: scores, limits, and scorers that misbehave."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import ScoringError
from jobs.scoring import Score, ScoringProcess, Tally, check_scorer, score_rows

SCORERS = """
import os, sys, time

def good(row):
    print("noise on stdout")
    return {"correct": row["text"] == "yes", "family": row["carried"]}

def bare(row):
    return {"correct": True}

def by_text(row):
    match row["text"]:
        case "raise": raise KeyError("family")
        case "exit": os._exit(3)
        case "quit": sys.exit(3)
        case "spin":
            while True: pass
        case "sleep": time.sleep(600)
        case "memory": bytearray(1 << 40)
        case "number": return 1
        case "text": return {"correct": "yes"}
        case "family": return {"correct": True, "family": 3}
        case "secret": return {"correct": "SCORER_SECRET" in os.environ, "family": "secret"}
    return {"correct": True, "family": "fine"}

not_a_function = 3
"""


@pytest.fixture(autouse=True)
def _scorers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_scorers.py").write_text(SCORERS)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def misbehaving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScoringProcess]:
    """One process for all rows that must not end it for the next row."""
    folder = tmp_path_factory.mktemp("scorers")
    (folder / "own_scorers.py").write_text(SCORERS)
    before = Path.cwd()
    os.chdir(folder)
    try:
        with ScoringProcess("own_scorers:by_text", cpu_s=1, wall_s=150.0) as process:
            yield process
    finally:
        os.chdir(before)


def row(text: str | None, carried: str | None = None) -> dict[str, Any]:
    return {"text": text, "carried": carried}


def test_rows_are_scored_and_counted_by_family() -> None:
    rows = [row("yes", "b"), row("no", "b"), row("yes", "a"), row(None, "a")]
    tally = score_rows("own_scorers:good", rows)
    assert tally.accuracy() == {"all": 0.5, "a": 0.5, "b": 0.5}
    assert list(tally.accuracy()) == ["all", "a", "b"]
    assert tally.scored == {"all": 4, "a": 2, "b": 2}


def test_a_score_without_a_family_counts_over_all_only() -> None:
    assert score_rows("own_scorers:bare", [row("x")]).accuracy() == {"all": 1.0}


def test_no_row_gives_no_accuracy() -> None:
    assert score_rows("own_scorers:bare", []).accuracy() == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise", "the scorer raised KeyError: 'family'"),
        ("quit", "the scorer raised SystemExit: 3"),
        ("exit", "ended or did not answer"),
        ("spin", "more than 1 s of CPU time"),
        ("memory", "more memory than it may"),
        ("number", "a score is a dictionary"),
        ("text", "a score is a dictionary"),
        ("family", "`family` of a score is text, not int"),
    ],
)
def test_a_row_that_breaks_the_scorer_is_not_correct_and_the_next_one_is_scored(
    misbehaving: ScoringProcess, text: str, words: str
) -> None:
    score = misbehaving.score(row(text))
    assert not score.correct
    assert words in str(score.error)
    assert misbehaving.score(row("fine")) == Score(correct=True, family="fine")


def test_a_scorer_that_does_not_answer_is_ended() -> None:
    with ScoringProcess("own_scorers:by_text", wall_s=0.2) as process:
        assert "did not answer" in str(process.score(row("sleep")).error)


def test_a_scorer_does_not_see_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORER_SECRET", "x")
    assert score_rows("own_scorers:by_text", [row("secret")]).accuracy()["secret"] == 0.0


def test_a_long_row_and_any_text_pass_through() -> None:
    rows = [row("x" * (1 << 20), "\N{SNOWMAN}\n\x00"), row("yes", "\ud800")]
    tally = score_rows("own_scorers:good", rows)
    assert tally.scored["\N{SNOWMAN}\n\x00"] == 1
    assert tally.correct["\ud800"] == 1


def test_a_folder_in_the_current_directory_cannot_stand_in_for_an_installed_package(
    tmp_path: Path,
) -> None:
    (tmp_path / "json.py").write_text("raise SystemError('picked up')")
    check_scorer("own_scorers:good")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent_module:score", "No module named 'absent_module'"),
        ("own_scorers:absent", "has no attribute 'absent'"),
        ("own_scorers", "stats.scorer `own_scorers` cannot be loaded"),
        ("own_scorers:not_a_function", "not_a_function is not a function"),
    ],
)
def test_a_scorer_that_cannot_be_loaded_is_named(name: str, words: str) -> None:
    with pytest.raises(ScoringError, match=words):
        check_scorer(name)


def test_errors_count_as_not_correct() -> None:
    tally = Tally()
    tally.add(Score(correct=True, family="a"))
    tally.add(Score(correct=False, error="why"))
    assert (tally.accuracy(), tally.errors) == ({"all": 0.5, "a": 1.0}, ["why"])
