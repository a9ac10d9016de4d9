"""The scorer of the bundled tasks reads an output row as the product hands it over."""

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from examples.tiny.families import Problem
from examples.tiny.scoring import score
from examples.tiny.splits import problems

PROBLEMS = list(islice(problems("held_out", seed=17), 3))


def row(problem: Problem, *, text: str | None) -> dict[str, Any]:
    carried = {"family": problem.family, "reference": problem.reference}
    return {"id": "a", "sample": 0, "text": text, "carried": json.dumps(carried)}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.family)
def test_a_right_answer_counts_for_its_family(problem: Problem) -> None:
    judged = score(row(problem, text=problem.response))
    assert judged == {"correct": True, "family": problem.family}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.family)
def test_a_wrong_answer_counts_against_its_family(problem: Problem) -> None:
    judged = score(row(problem, text="I do not know."))
    assert judged == {"correct": False, "family": problem.family}


def test_an_error_row_is_not_correct() -> None:
    assert score(row(PROBLEMS[0], text=None))["correct"] is False


@pytest.mark.cli
def test_the_scorer_is_light_enough_for_a_memory_limit(repository: Path) -> None:
    program = "import sys, examples.tiny.scoring; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=repository, capture_output=True, text=True, check=True
    )
    assert not {"torch", "transformers", "ray", "numpy"} & set(done.stdout.split())
