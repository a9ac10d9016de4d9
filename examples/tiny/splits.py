"""Seeded streams of problems; train and held-out prompts are disjoint by construction.

A prompt belongs to the held-out side if and only if its hash falls into one bucket of ten, so no
prompt can be on both sides, whatever the seeds.
"""

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from examples.tiny.families import FAMILIES, Problem

Side = Literal["train", "held_out"]


def side_of(prompt: str) -> Side:
    """The side that a prompt belongs to; a pure function of its text."""
    digest = hashlib.blake2b(prompt.encode(), digest_size=8).digest()
    return "held_out" if int.from_bytes(digest, "little") % 10 == 0 else "train"


def problems(
    side: Side, *, seed: int, unique: bool = True, mix: Sequence[str] = tuple(FAMILIES)
) -> Iterator[Problem]:
    """An endless stream over the families of ``mix`` in turn; ``unique`` drops repeated prompts."""
    rng = random.Random(seed)  # noqa: S311 - data, not secrets
    seen: set[str] = set()
    while True:
        for name in mix:
            yield _next(FAMILIES[name].generate, rng, side=side, seen=seen if unique else None)


def _next(
    generate: Callable[[random.Random], Problem],
    rng: random.Random,
    *,
    side: Side,
    seen: set[str] | None,
) -> Problem:
    while True:
        problem = generate(rng)
        if side_of(problem.prompt) != side or (seen is not None and problem.prompt in seen):
            continue
        if seen is not None:
            seen.add(problem.prompt)
        return problem
