"""The tutorial's function: what it keeps, and what it leaves out."""

import json

import pytest

from examples.tutorial.cleaning import keep


def sample(family: str, text: str, *, finish_reason: str = "stop") -> dict[str, object]:
    carried = json.dumps({"family": family, "reference": "{}"})
    return {"text": text, "finish_reason": finish_reason, "carried": carried}


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("arithmetic", "2 * 3 = 6.\nThe answer is 6."),
        ("functions", "def get_items(items):\n    return items"),
        ("extraction", '{"name": "Ivan"}'),
    ],
)
def test_an_answer_in_its_form_is_kept_without_blanks_at_its_end(family: str, text: str) -> None:
    assert keep(sample(family, f"{text}\n ")) == text


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("arithmetic", "The answer is 6. Or 7"),
        ("functions", "def get_items(items):\n  return (items"),
        ("functions", "print(1)"),
        ("functions", "def f():\0"),
        ("extraction", '{"name": "Ivan"'),
        ("extraction", "[1]"),
    ],
)
def test_an_answer_in_another_form_is_left_out(family: str, text: str) -> None:
    assert keep(sample(family, text)) is None


def test_an_answer_that_was_cut_off_is_left_out() -> None:
    assert keep(sample("extraction", '{"name": "Ivan"}', finish_reason="length")) is None
