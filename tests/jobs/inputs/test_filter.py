"""The filter: what it keeps, what it refuses, and that it runs nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.inputs.filter import parse_filter
from manifests.errors import InputError, JobFileError
from tests.jobs.inputs.support import rows_over

ROWS: list[dict[str, Any]] = [
    {"k": "a", "prompt": "short", "lang": "en", "score": 0.5, "n": 1},
    {"k": "b", "prompt": "rather long", "lang": "De", "score": 2, "n": 2},
    {"k": "c", "prompt": "x", "lang": None, "score": None, "n": 3},
    {"k": "d", "prompt": "xyz", "lang": "fr", "two words": "t", "n": 4},
]


def kept(folder: Path, expression: str, rows: list[Any] | None = None) -> str:
    path = folder / "p.jsonl"
    lines = [json.dumps(row) if isinstance(row, dict) else str(row) for row in rows or ROWS]
    path.write_text("\n".join(lines) + "\n")
    staged = rows_over(path, columns={"id": "k"}, filter=expression)
    return "".join(str(row.id) for row in staged)


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("lang == 'en'", "a"),
        ("lang != 'en'", "bd"),
        ("score > 0.5", "b"),
        ("0.5 <= score < 2", "a"),
        ("1 < n < 4", "bc"),
        ("n >= 2 and n <= 3", "bc"),
        ("n == 1 or lang == 'fr'", "ad"),
        ("not n == 1", "bcd"),
        ("lang in ['en', 'fr']", "ad"),
        ("n not in (1, 2)", "cd"),
        ("is_null(lang)", "c"),
        ("not is_null(score)", "ab"),
        ("length(prompt) > 3", "ab"),
        ("lower(lang) == 'de'", "b"),
        ("contains(prompt, 'long')", "b"),
        ("starts_with(prompt, 'x')", "cd"),
        ("ends_with(prompt, 't')", "a"),
        ("matches(prompt, '^x+$')", "c"),
        ("column('two words') == 't'", "d"),
        ("n * 2 - 1 == 5", "c"),
        ("number(k) == 1 or n < 2", None),
        ("-n < -3", "d"),
    ],
)
def test_rows_for_which_it_is_true_are_kept(
    tmp_path: Path, expression: str, ids: str | None
) -> None:
    if ids is None:
        with pytest.raises(InputError, match=r"cannot be evaluated from p\.jsonl, line 1 on"):
            kept(tmp_path, expression)
    else:
        assert kept(tmp_path, expression) == ids


def test_text_is_compared_as_a_number_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("k,prompt,score\na,x,10\nb,y,9\n")
    (row,) = rows_over(path, columns={"id": "k"}, filter="number(score) > 9")
    assert row.id == "a"
    with pytest.raises(InputError, match=r"turn text into numbers with number\(column\)"):
        rows_over(path, columns={"id": "k"}, filter="score > 9")


def test_rows_in_trouble_pass_to_be_reported_and_numbers_stay_those_of_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"prompt": "a", "n": 1}\nbroken\n{"prompt": "c", "n": 2}\n')
    rows = rows_over(path, filter="n == 2")
    assert [(row.row, row.id, row.error_class) for row in rows] == [
        (0, "p.jsonl:1", "InvalidJson"),
        (1, "p.jsonl:2", None),
    ]


def test_the_limit_comes_after_the_filter(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text("".join(f'{{"prompt": "a", "n": {n}}}\n' for n in range(2000)))
    rows = rows_over(path, filter="n >= 1500", limit=2)
    assert [row.id for row in rows] == ["p.jsonl:1500", "p.jsonl:1501"]


def test_a_column_that_no_row_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"input\.filter: no row has a column `lng`; did you mean"):
        kept(tmp_path, "is_null(lng)")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "it is no expression"),
        ("lang = 'en'", "it is no expression"),
        ("lang", None),
        ("1 == 1", "it names no column"),
        ("lang.upper() == 'EN'", r"`lang\.upper\(\)` cannot be used here"),
        ("__import__('os').system('true')", "cannot be used here"),
        ("[x for x in n]", "cannot be used here"),
        ("(lambda: 1)() == n", "cannot be used here"),
        ("n[0] == 1", r"`n\[0\]` cannot be used here"),
        ("f'{n}' == '1'", "cannot be used here"),
        ("lang == None", r"write is_null\(column\)"),
        ("lang is None", "cannot be used here"),
        ("n in n", "behind `in` stands a list of values"),
        ("n in [n]", "behind `in` stands a list of values"),
        ("length(prompt, 2) > 1", "cannot be used here"),
        ("contains(prompt, lang)", "cannot be used here"),
        ("len(prompt) > 1", "the functions length, lower"),
        ("n ** 2 == 4", "cannot be used here"),
    ],
)
def test_what_is_no_such_expression_is_refused(expression: str, words: str | None) -> None:
    if words is None:
        assert parse_filter(expression).columns == {"lang"}
        return
    with pytest.raises(JobFileError, match=words):
        parse_filter(expression)
