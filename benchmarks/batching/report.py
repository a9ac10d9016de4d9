"""Tables of a result, for ``docs/benchmarks.md``; they stand between two markers of their own."""

from collections.abc import Iterable
from pathlib import Path

from benchmarks.batching.cells import POLICIES
from benchmarks.batching.document import (
    WALL,
    EngineDocument,
    EngineRow,
    read_engine_document,
    verdicts,
)
from benchmarks.page import DOCS, PAGE, replace_tables

BEGIN, END = "<!-- engine: begin -->\n", "<!-- engine: end -->\n"
RESULT = DOCS / "engine.json"


def engine_report(document: EngineDocument) -> str:
    """All tables, one for each clock, with what is to be read from them."""
    clocks = list(dict.fromkeys(row.clock for row in document.rows))
    tables = [_table([r for r in document.rows if r.clock == c], clock=c) for c in clocks]
    one, slots = document.concurrency_1, document.slots.stream_over_single_shard
    said = [
        _verdict_line(v.clock, v.mean_over_best, v.worst_over_best, v.worst_over_draft_free)
        for v in verdicts(document.rows)
    ]
    if one.auto is not None and one.bound is not None:
        said.append(
            f"One sample at a time `auto` reaches {one.auto:.2f} of draft-free decoding; the best "
            f"tree of a fixed size could reach {one.bound:.2f}.\n"
        )
    if slots is not None:
        said.append(f"A stream of small shards has {slots:.2f} of the tokens/s of one shard.\n")
    return "\n" + "\n".join([*tables, *said]) + "\n"


def _table(rows: list[EngineRow], *, clock: str) -> str:
    title = "Wall clock" if clock == WALL else f"Clock `{clock}`, simulated"
    head = "| rule | T | concurrency | draft-free tokens/s | host | " + " | ".join(
        f"`{policy}`" for policy in POLICIES[1:]
    )
    lines = [f"### {title}", "", head + " |", "|---|---:|" + "---:|" * (len(POLICIES) + 2)]
    for cell in dict.fromkeys(row.cell for row in rows):
        lines.append(_line([row for row in rows if row.cell == cell]))
    return "\n".join(lines) + "\n"


def _line(rows: Iterable[EngineRow]) -> str:
    by_policy = {row.policy: row for row in rows}
    free = by_policy["draft_free"]
    figures = [
        f"{by_policy[policy].ratio_to_draft_free:.2f}{'' if by_policy[policy].identical else ' !'}"
        for policy in POLICIES[1:]
    ]
    start = f"| {free.rule} | {free.temperature:g} | {free.concurrency} | "
    return (
        start + f"{free.tokens_per_s:.0f} | {free.host_share:.0%} | " + " | ".join(figures) + " |"
    )


def _verdict_line(clock: str, mean: float, worst: float, free: float) -> str:
    return (
        f"`{clock}`: `auto` has {mean:.3f} of the best policy of its cell (geometric mean), "
        f"{worst:.3f} at worst, and {free:.3f} of draft-free decoding at worst.\n"
    )


def write_engine_page(path: Path | None, document: EngineDocument) -> None:
    """Renew the tables of a page; nothing without a path."""
    replace_tables(path, engine_report(document), begin=BEGIN, end=END)


if __name__ == "__main__":
    write_engine_page(PAGE, read_engine_document(RESULT))
