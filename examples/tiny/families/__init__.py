"""The three task families that the bundled target is trained on.

Each family module offers ``generate(rng) -> Problem`` and ``check(problem_fields, text) -> bool``.
"""

from examples.tiny.families import arithmetic, extraction, functions
from examples.tiny.families.base import Problem

FAMILIES = {
    "arithmetic": arithmetic,
    "functions": functions,
    "extraction": extraction,
}

__all__ = ["FAMILIES", "Problem"]
