"""Short Python functions from a description; an answer is checked by running it on examples.

``check`` executes model output: call it only inside a limited child process, as the scorer does.
"""

import json
import random
from typing import Any

from examples.tiny.families.base import Problem

FAMILY = "functions"
SUBJECTS = ("values", "numbers", "items", "scores", "prices", "ages")
ELEMENTS = {
    "values": "value",
    "numbers": "number",
    "items": "item",
    "scores": "score",
    "prices": "price",
    "ages": "age",
}
VERBS = ("compute", "collect", "find", "get", "make", "solve")

# description, expression with {x} and {k}
CONDITIONS = (
    ("that are greater than {k}", "{x} > {k}"),
    ("that are less than {k}", "{x} < {k}"),
    ("that are not equal to {k}", "{x} != {k}"),
    ("that are divisible by {k}", "{x} % {k} == 0"),
    ("that are not divisible by {k}", "{x} % {k} != 0"),
    ("that are at least {k}", "{x} >= {k}"),
    ("that are at most {k}", "{x} <= {k}"),
)
TRANSFORMS = (
    ("", "{x}"),
    ("plus {m}", "{x} + {m}"),
    ("minus {m}", "{x} - {m}"),
    ("times {m}", "{x} * {m}"),
    ("squared", "{x} * {x}"),
)
# noun phrase, initial value, update with {t}
FOLDS = (
    ("the sum of", "0", "result = result + {t}"),
    ("the product of", "1", "result = result * ({t})"),
    ("a list of", "[]", "result.append({t})"),
    ("the largest of 0 and", "0", "result = max(result, {t})"),
)
EXAMPLES: tuple[list[int], ...] = (
    [],
    [3],
    [1, 2, 3, 4, 5, 6],
    [9, 4, 7, 2, 8],
    [5, 5, 10, 12, 20, 0],
    [-3, 6, -8, 15, 7],
)


def generate(rng: random.Random) -> Problem:
    """Draw one filter-transform-fold function."""
    subject = rng.choice(SUBJECTS)
    element, name = ELEMENTS[subject], f"{rng.choice(VERBS)}_{subject}"
    condition_text, condition = rng.choice(CONDITIONS)
    transform_text, transform = rng.choice(TRANSFORMS)
    fold_text, initial, update = rng.choice(FOLDS)
    names = {"x": element, "k": rng.randint(2, 12), "m": rng.randint(2, 9)}
    term = transform.format(**names)
    each = f" {transform_text.format(**names)}," if transform_text else ""
    goal = f"{fold_text} all {subject} {condition_text.format(**names)}"
    if each:
        goal = f"{goal}, each{each}".rstrip(",")
    response = (
        f"def {name}({subject}):\n"
        f'    """Return {goal}."""\n'
        f"    if len({subject}) == 0:\n"
        f"        return {initial}\n"
        f"    result = {initial}\n"
        f"    for {element} in {subject}:\n"
        f"        if {condition.format(**names)}:\n"
        f"            {update.format(t=term)}\n"
        f"    return result"
    )
    return Problem(
        family=FAMILY,
        prompt=f"Write a Python function {name} that takes {subject} and returns {goal}.",
        response=response,
        reference=json.dumps({"name": name, "cases": _cases(response, name)}),
    )


def _cases(source: str, name: str) -> list[list[Any]]:
    function = _load(source, name)
    return [[list(values), function(list(values))] for values in EXAMPLES]


def _load(source: str, name: str) -> Any:
    scope: dict[str, Any] = {"__builtins__": {"max": max, "min": min, "sum": sum, "len": len}}
    exec(compile(source, "<answer>", "exec"), scope)  # noqa: S102 - the point of this scorer
    return scope[name]


def check(reference: str, text: str) -> bool:
    """Whether the function in the text gives the expected result on every example."""
    expected = json.loads(reference)
    try:
        function = _load(text, expected["name"])
        return all(function(list(values)) == result for values, result in expected["cases"])
    except Exception:  # model output may raise anything; any of it is a wrong answer
        return False
