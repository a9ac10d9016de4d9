"""Multi-step word problems over small whole numbers; the answer is the last number of the text."""

import json
import random
import re
from collections.abc import Callable

from examples.tiny.families.base import Problem

FAMILY = "arithmetic"
NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Frank", "Grace", "Henry", "Irene", "Jack")
ITEMS = ("apples", "books", "cards", "coins", "eggs", "pens", "shells", "stamps", "stones", "toys")
CONTAINERS = ("bags", "boxes", "packs", "trays")


def _packs(rng: random.Random) -> tuple[str, str, int]:
    name, item, box = rng.choice(NAMES), rng.choice(ITEMS), rng.choice(CONTAINERS)
    start, num, each = rng.randint(2, 20), rng.randint(2, 9), rng.randint(2, 9)
    bought = num * each
    total = start + bought
    given = rng.randint(2, min(9, total - 1))
    left = total - given
    prompt = (
        f"{name} has {start} {item}. {name} buys {num} {box} with {each} {item} in each and then "
        f"gives {given} {item} to a friend. How many {item} does {name} have now?"
    )
    work = (
        f"First count the new {item}: {num} * {each} = {bought}.\n"
        f"Then add the {start} {item} from the start: {start} + {bought} = {total}.\n"
        f"Last take away the {given} {item} for the friend: {total} - {given} = {left}.\n"
        f"{name} has {left} {item} now."
    )
    return prompt, work, left


def _shop(rng: random.Random) -> tuple[str, str, int]:
    name, first, second = rng.choice(NAMES), *rng.sample(ITEMS, 2)
    count_a, price_a = rng.randint(2, 9), rng.randint(2, 5)
    count_b, price_b = rng.randint(2, 9), rng.randint(2, 5)
    cost_a, cost_b = count_a * price_a, count_b * price_b
    total = cost_a + cost_b
    paid = total + rng.randint(1, 9)
    change = paid - total
    prompt = (
        f"{name} buys {count_a} {first} for {price_a} dollars each and {count_b} {second} for "
        f"{price_b} dollars each. {name} pays with {paid} dollars. How much change does {name} get?"
    )
    work = (
        f"The {first} cost {count_a} * {price_a} = {cost_a} dollars.\n"
        f"The {second} cost {count_b} * {price_b} = {cost_b} dollars.\n"
        f"Together they cost {cost_a} + {cost_b} = {total} dollars.\n"
        f"The change is {paid} - {total} = {change} dollars."
    )
    return prompt, work, change


def _week(rng: random.Random) -> tuple[str, str, int]:
    name, item, box = rng.choice(NAMES), rng.choice(ITEMS), rng.choice(CONTAINERS)
    groups, each = rng.randint(2, 7), rng.randint(2, 7)
    total = groups * each
    if total < 6:
        return _week(rng)
    monday = rng.randint(1, total - 3)
    tuesday = rng.randint(1, total - monday - 1)
    wednesday = total - monday - tuesday
    two_days = monday + tuesday
    prompt = (
        f"{name} finds {monday} {item} on Monday, {tuesday} {item} on Tuesday and {wednesday} "
        f"{item} on Wednesday. {name} puts all {item} into {groups} equal {box}. How many {item} "
        f"are in each?"
    )
    work = (
        f"Monday and Tuesday give {monday} + {tuesday} = {two_days} {item}.\n"
        f"With Wednesday there are {two_days} + {wednesday} = {total} {item}.\n"
        f"Share them over the {groups} {box}: {total} / {groups} = {each}.\n"
        f"There are {each} {item} in each."
    )
    return prompt, work, each


SHAPES: tuple[Callable[[random.Random], tuple[str, str, int]], ...] = (_packs, _shop, _week)


def generate(rng: random.Random) -> Problem:
    """Draw one problem of two to four steps."""
    prompt, work, answer = rng.choice(SHAPES)(rng)
    return Problem(
        family=FAMILY,
        prompt=prompt,
        response=f"{work}\nThe answer is {answer}.",
        reference=json.dumps({"answer": answer}),
    )


def check(reference: str, text: str) -> bool:
    """Whether the text states the right answer in its closing sentence."""
    found = re.findall(r"The answer is (\d+)\.", text)
    return bool(found) and int(found[-1]) == json.loads(reference)["answer"]
