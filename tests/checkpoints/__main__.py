"""``python -m tests.checkpoints DIR`` writes one checkpoint of each family."""

import argparse
from pathlib import Path

from tests.checkpoints import FAMILY_NAMES, write_released


def main() -> None:
    """Write one checkpoint of each family."""
    parser = argparse.ArgumentParser(prog="python -m tests.checkpoints", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--vocabulary", choices=("tiny", "released"), default="tiny")
    options = parser.parse_args()
    for family in FAMILY_NAMES:
        print(write_released(family, options.directory / family, vocabulary=options.vocabulary))


if __name__ == "__main__":
    main()
