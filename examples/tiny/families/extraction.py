"""Structured extraction: an order in a sentence becomes a JSON object."""

import json
import random

from examples.tiny.families.base import Problem

FAMILY = "extraction"
NAMES = ("Alice", "Carlos", "Elena", "George", "Hana", "Ivan", "Julia", "Karl", "Laura", "Marco")
CITIES = ("Berlin", "Cairo", "Delhi", "Lima", "London", "Madrid", "Oslo", "Paris", "Rome", "Tokyo")
COLORS = ("black", "blue", "brown", "green", "red", "white", "yellow")
THINGS = ("chairs", "clocks", "cups", "hats", "lamps", "mirrors", "shirts", "tables", "vases")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")

OPENINGS = (
    "{name} from {city} ordered {goods} on {day}.",
    "On {day} {name} from {city} ordered {goods}.",
    "An order came in on {day}: {goods} for {name} in {city}.",
)


def _line(rng: random.Random, thing: str) -> dict[str, object]:
    return {
        "item": thing,
        "color": rng.choice(COLORS),
        "count": rng.randint(2, 40),
        "price": rng.randint(2, 99),
    }


def generate(rng: random.Random) -> Problem:
    """Draw one order of two or three lines."""
    things = rng.sample(THINGS, rng.choice((2, 2, 3)))
    lines = [_line(rng, thing) for thing in things]
    order = {
        "name": rng.choice(NAMES),
        "city": rng.choice(CITIES),
        "day": rng.choice(DAYS),
        "express": rng.random() < 0.5,
        "lines": lines,
    }
    goods = " and ".join(
        f"{line['count']} {line['color']} {line['item']} for {line['price']} dollars each"
        for line in lines
    )
    sentence = rng.choice(OPENINGS).format(goods=goods, **order)
    speed = "Send it by express." if order["express"] else "Normal delivery is fine."
    return Problem(
        family=FAMILY,
        prompt=f"Extract the order as JSON. {sentence} {speed}",
        response=json.dumps(order),
        reference=json.dumps(order),
    )


def check(reference: str, text: str) -> bool:
    """Whether the text is exactly one JSON object equal to the order."""
    try:
        return bool(json.loads(text) == json.loads(reference))
    except ValueError:
        return False
