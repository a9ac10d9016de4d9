"""Write prompts as JSONL; without options, the quickstart's own held-out ones.

``python -m examples.quickstart.make_prompts`` rewrites ``examples/quickstart/prompts.jsonl``.
``--rows 300 --seed 7 --out out/held_out.jsonl`` makes another held-out set,
``--side train`` one to train a drafter on. The same options always give the same bytes.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from examples.tiny.families import FAMILIES
from examples.tiny.splits import Side, problems

NUM_ROWS, SEED = 240, 2025
DEFAULT_PATH = Path(__file__).with_name("prompts.jsonl")


def lines(
    *, num_rows: int, seed: int, side: Side = "held_out", mix: Sequence[str] = tuple(FAMILIES)
) -> Iterator[str]:
    """JSON lines with id, prompt, family and reference; the families of ``mix`` take turns."""
    for index, problem in enumerate(islice(problems(side, seed=seed, mix=mix), num_rows)):
        row = {
            "id": f"{problem.family}-{index:04d}",
            "prompt": problem.prompt,
            "family": problem.family,
            "reference": problem.reference,
        }
        yield json.dumps(row) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Write prompts as JSONL.")
    parser.add_argument("--rows", type=int, default=NUM_ROWS, help="number of prompts")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the generator")
    parser.add_argument("--out", type=Path, default=DEFAULT_PATH, help="file to write")
    parser.add_argument("--side", choices=("train", "held_out"), default="held_out")
    parser.add_argument(
        "--family", choices=tuple(FAMILIES), action="append", help="only this one; repeatable"
    )
    options = parser.parse_args(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(
        "".join(
            lines(
                num_rows=options.rows,
                seed=options.seed,
                side=options.side,
                mix=options.family or tuple(FAMILIES),
            )
        )
    )


if __name__ == "__main__":
    main()
