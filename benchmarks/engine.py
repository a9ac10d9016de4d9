"""The engine under load: policies against draft-free decoding at every concurrency.

``python -m benchmarks.engine [--json FILE] [--markdown FILE] [--clock NAME]..`` decodes held-out
prompts of the bundled target with every policy, on the wall clock and on simulated ones. Identity
comes first: where a trajectory is not the draft-free one, the exit code is 1.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.batching.bound import bound_at_concurrency_one
from benchmarks.batching.cells import CONCURRENCIES, Cell, cells
from benchmarks.batching.clocks import ClockTable, clock_names, read_clock
from benchmarks.batching.document import (
    WALL,
    ConcurrencyOne,
    EngineDocument,
    EngineRow,
    Slots,
    verdicts,
    write_engine_document,
)
from benchmarks.batching.report import BEGIN, END, write_engine_page
from benchmarks.batching.runs import Bench
from benchmarks.batching.simulate import simulated_rows
from benchmarks.batching.slots import stream_over_single_shard
from benchmarks.batching.streams import prompts_of
from benchmarks.batching.wall import Progress, WallClock
from benchmarks.decoding import count_of, progress_since_now
from benchmarks.document import DocumentError
from benchmarks.machine import describe_machine
from benchmarks.page import check_page
from benchmarks.workload import Workload, load

REPEATS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write; 1 if an output differs, 2 if it cannot be measured."""
    options = _parser().parse_args(arguments)
    try:
        clocks = options.clock or [WALL, *clock_names()]
        tables = [read_clock(name) for name in clocks if name != WALL]
        check_page(options.markdown, begin=BEGIN, end=END)
    except DocumentError as error:
        print(error, file=sys.stderr)
        return 2
    chosen = cells(tuple(options.concurrency or CONCURRENCIES))
    workload = Workload(num_prompts=max(prompts_of(cell) for cell in chosen))
    document = _measure(chosen, tables, workload, wall=WALL in clocks, options=options)
    if options.json:
        write_engine_document(document, options.json)
    write_engine_page(options.markdown, document)
    return _verdict(document, progress_since_now())


def _measure(
    chosen: list[Cell],
    tables: list[ClockTable],
    workload: Workload,
    *,
    wall: bool,
    options: argparse.Namespace,
) -> EngineDocument:
    progress, loaded = progress_since_now(), load(workload)
    bench = Bench(target=loaded.target, requests=loaded.requests, clock=time.perf_counter)
    rows: list[EngineRow] = []
    bound = slots = None
    if wall:
        clock = WallClock(bench, workload, repeats=options.repeats, progress=progress)
        rows += [row for cell in chosen for row in clock.rows(cell)]
        first = Cell(rule="strict", temperature=0.0, concurrency=1)
        bound = bound_at_concurrency_one(bench, workload, first) if first in chosen else None
        slots = stream_over_single_shard(bench, num_shards=options.shards)
    rows += simulated_rows(chosen, tables, bench=bench, workload=workload, progress=progress)
    return EngineDocument(
        machine=describe_machine(),
        rows=tuple(rows),
        slots=Slots(stream_over_single_shard=slots),
        concurrency_1=ConcurrencyOne(auto=_auto_at_one(rows), bound=bound),
    )


def _auto_at_one(rows: list[EngineRow]) -> float | None:
    """The automatic budget's ratio, one strict sample at a time at temperature 0."""
    wanted = (WALL, "strict", 0.0, 1)
    found = (r.ratio_to_draft_free for r in rows if r.policy == "auto" and r.cell == wanted)
    return next(found, None)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine",
        description="Policies of the engine against draft-free decoding at every concurrency.",
    )
    parser.add_argument("--json", type=Path, help="write the rows here")
    parser.add_argument("--markdown", type=Path, help="renew the tables of this page")
    names = ", ".join([WALL, *clock_names()])
    help_ = f"one of {names}, or a cost table; may be repeated (all of them)"
    parser.add_argument("--clock", action="append", help=help_)
    help_ = "only this concurrency; may be repeated"
    parser.add_argument("--concurrency", action="append", type=count_of, help=help_)
    help_ = f"turns of every policy on the wall clock ({REPEATS})"
    parser.add_argument("--repeats", type=count_of, default=REPEATS, help=help_)
    help_ = "shards of 64 rows that are streamed (20)"
    parser.add_argument("--shards", type=count_of, default=20, help=help_)
    return parser


def _verdict(document: EngineDocument, progress: Progress) -> int:
    """0 if every row is identical."""
    for verdict in verdicts(document.rows):
        progress(
            f"{verdict.clock}: auto over the best {verdict.mean_over_best:.3f} (geometric mean), "
            f"{verdict.worst_over_best:.3f} at worst; over draft-free "
            f"{verdict.worst_over_draft_free:.3f} at worst"
        )
    one = document.concurrency_1
    progress(f"one sample at a time: auto {one.auto}, bound {one.bound}")
    progress(f"stream over single shard: {document.slots.stream_over_single_shard}")
    wrong = [row for row in document.rows if not row.identical]
    for row in wrong:
        print(f"{row.policy} ({row.cell}) differs from draft-free decoding", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
