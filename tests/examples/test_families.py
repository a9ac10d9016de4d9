"""Each family accepts its own worked responses and rejects wrong ones."""

import json
import random
from collections.abc import Callable

import pytest

from examples.tiny.families import FAMILIES, Problem

NUM_PROBLEMS = 200


def drawn(family: str) -> list[Problem]:
    rng = random.Random(31)
    return [FAMILIES[family].generate(rng) for _ in range(NUM_PROBLEMS)]


def accepted(family: str, change: Callable[[Problem], str]) -> list[str]:
    """The changed responses that the family takes for right."""
    chosen = [(problem, change(problem)) for problem in drawn(family)]
    return [text for problem, text in chosen if FAMILIES[family].check(problem.reference, text)]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_worked_response_is_accepted(family: str) -> None:
    assert len(accepted(family, lambda problem: problem.response)) == NUM_PROBLEMS


@pytest.mark.parametrize("family", FAMILIES)
def test_a_problem_names_its_family(family: str) -> None:
    assert {problem.family for problem in drawn(family)} == {family}


@pytest.mark.parametrize("family", FAMILIES)
def test_an_empty_answer_is_rejected(family: str) -> None:
    assert accepted(family, lambda _: "") == []


@pytest.mark.parametrize("family", FAMILIES)
def test_an_answer_cut_in_half_is_rejected(family: str) -> None:
    assert accepted(family, lambda problem: problem.response[: len(problem.response) // 2]) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_the_prompt_given_back_is_rejected(family: str) -> None:
    assert accepted(family, lambda problem: problem.prompt) == []


def test_a_wrong_number_is_rejected() -> None:
    def off_by_one(problem: Problem) -> str:
        answer = json.loads(problem.reference)["answer"]
        return problem.response.replace(f"answer is {answer}.", f"answer is {answer + 1}.")

    assert accepted("arithmetic", off_by_one) == []


def test_the_last_stated_number_decides() -> None:
    def corrected(problem: Problem) -> str:
        return f"The answer is 100000. No. {problem.response}"

    assert len(accepted("arithmetic", corrected)) == NUM_PROBLEMS


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("        if ", "        if not "),
        ("    result = ", "    result = 9 or "),
        ("return result", "return None"),
        ("def ", "def other_"),
        ("for ", "for for "),
    ],
)
def test_a_function_with_a_fault_is_rejected(right: str, wrong: str) -> None:
    assert accepted("functions", lambda problem: problem.response.replace(right, wrong)) == []


def test_a_function_is_judged_by_what_it_returns() -> None:
    def renamed(problem: Problem) -> str:
        return problem.response.replace("result", "outcome")

    assert len(accepted("functions", renamed)) == NUM_PROBLEMS


def test_a_function_cannot_import() -> None:
    def importing(problem: Problem) -> str:
        return f"import os\n{problem.response}"

    assert accepted("functions", importing) == []


def test_an_order_with_another_value_is_rejected() -> None:
    def other_count(problem: Problem) -> str:
        order = json.loads(problem.response)
        order["lines"][-1]["count"] += 1
        return json.dumps(order)

    assert accepted("extraction", other_count) == []


def test_an_order_without_a_line_is_rejected() -> None:
    def one_line_less(problem: Problem) -> str:
        order = json.loads(problem.response)
        return json.dumps(order | {"lines": order["lines"][:-1]})

    assert accepted("extraction", one_line_less) == []


def test_text_around_the_json_is_rejected() -> None:
    assert accepted("extraction", lambda problem: f"Here it is: {problem.response}") == []


def test_the_layout_of_the_json_does_not_matter() -> None:
    def spread(problem: Problem) -> str:
        return json.dumps(json.loads(problem.response), indent=2, sort_keys=True)

    assert len(accepted("extraction", spread)) == NUM_PROBLEMS
