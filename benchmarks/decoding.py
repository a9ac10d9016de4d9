"""Forwards and seconds of every drafter against draft-free decoding, on the bundled target.

``python -m benchmarks.decoding [--json FILE] [--markdown FILE] [--full] [--samples N]
[--processes N]`` decodes held-out prompts. Identity comes first: every row says whether its
trajectories are the draft-free ones, and where one that must be is not, the exit code is 1.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.document import Document, DocumentError, Row, write_document
from benchmarks.forwards import Progress, measure_all
from benchmarks.machine import describe_machine
from benchmarks.page import check_page, write_page
from benchmarks.settings import LOSSY, plan
from benchmarks.wall import with_walls
from benchmarks.workload import TINY, Workload
from spot.drafters.checkpoint import DrafterError


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write; 1 if an output differs, 2 if it cannot be measured."""
    options = _parser().parse_args(arguments)
    settings = plan(full=options.full, samples=options.samples)
    workload = Workload(
        target=options.target,
        drafter=options.drafter,
        sets=options.sets,
        spiffy=options.spiffy,
        num_prompts=max(setting.samples for setting in settings),
    )
    try:
        workload.check()
        check_page(options.markdown)
    except (DrafterError, DocumentError) as error:
        print(error, file=sys.stderr)
        return 2
    progress = progress_since_now()
    rows = measure_all(settings, workload, processes=options.processes, progress=progress)
    document = Document(
        machine=describe_machine(),
        rows=tuple(with_walls(settings, rows, workload, progress=progress)),
    )
    if options.json:
        write_document(document, options.json)
    write_page(options.markdown, document)
    return _verdict(document.rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decoding",
        description="Forwards and seconds of every drafter against draft-free decoding.",
    )
    parser.add_argument("--json", type=Path, help="write the rows here")
    parser.add_argument("--markdown", type=Path, help="renew the tables of this page")
    parser.add_argument("--full", action="store_true", help="ablations and oracles too")
    parser.add_argument("--samples", type=count_of, help="prompts of every row, for a quick look")
    parser.add_argument("--processes", type=count_of, default=2, help="rows at the same time")
    for name in ("target", "drafter", "sets", "spiffy"):
        help_ = f"directory of the {name}"
        parser.add_argument(f"--{name}", type=Path, default=TINY / name, help=help_)
    return parser


def count_of(text: str) -> int:
    """A whole number from 1 on."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return int(text)


def progress_since_now() -> Progress:
    """Prints lines with the time since now."""
    began = time.perf_counter()

    def say(line: str) -> None:
        print(f"[{time.perf_counter() - began:7.1f} s] {line}", file=sys.stderr, flush=True)

    return say


def _verdict(rows: Sequence[Row]) -> int:
    """0 if every row that must be identical is."""
    wrong = [row for row in rows if row.method not in LOSSY and not row.identical]
    for row in wrong:
        where = f"{row.protocol} {row.rule} T {row.temperature:g} budget {row.budget}"
        print(f"{row.method} ({where}) differs from draft-free decoding", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
