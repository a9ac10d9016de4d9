"""The generator's two sides share no prompt, and a seed fixes the stream."""

import hashlib
import json
from collections import Counter
from dataclasses import asdict
from itertools import islice

import pytest

from examples.tiny.families import FAMILIES, Problem
from examples.tiny.splits import Side, problems, side_of

SIDES: tuple[Side, Side] = ("train", "held_out")


def draw(side: Side, *, num: int, seed: int = 5, unique: bool = True) -> list[Problem]:
    return list(islice(problems(side, seed=seed, unique=unique), num))


@pytest.mark.parametrize("side", SIDES)
def test_every_prompt_of_a_stream_belongs_to_its_side(side: Side) -> None:
    assert {side_of(problem.prompt) for problem in draw(side, num=600)} == {side}


def test_the_sides_share_no_prompt_even_under_one_seed() -> None:
    train, held_out = (
        {problem.prompt for problem in draw(side, num=1500, unique=False)} for side in SIDES
    )
    assert not train & held_out


def test_the_held_out_side_takes_about_one_prompt_in_ten() -> None:
    sides = Counter(side_of(f"prompt {number}") for number in range(10_000))
    assert 900 <= sides["held_out"] <= 1100


def test_the_side_of_a_prompt_is_frozen() -> None:
    held_out = {number for number in range(40) if side_of(f"prompt {number}") == "held_out"}
    assert held_out == {9, 13, 21, 24, 28, 36}


@pytest.mark.parametrize("side", SIDES)
def test_a_unique_stream_repeats_no_prompt(side: Side) -> None:
    prompts = [problem.prompt for problem in draw(side, num=900)]
    assert len(set(prompts)) == len(prompts)


def test_the_families_take_turns() -> None:
    assert [problem.family for problem in draw("train", num=6)] == [*FAMILIES] * 2


def test_a_seed_fixes_the_stream() -> None:
    assert draw("held_out", num=90, seed=3) == draw("held_out", num=90, seed=3)


def test_the_training_data_of_the_bundled_target_is_frozen() -> None:
    digest = hashlib.sha256()
    for problem in draw("train", num=300, seed=202, unique=False):
        digest.update(json.dumps(asdict(problem), sort_keys=True).encode())
    assert digest.hexdigest()[:16] == "d676943f2c35aab2"


def test_another_seed_gives_another_stream() -> None:
    assert draw("held_out", num=90, seed=3) != draw("held_out", num=90, seed=4)
