"""The result file: one machine, one row for each policy of each cell, two figures beside them."""

import math
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.batching.cells import Policy
from benchmarks.document import DocumentError, Machine

WALL = "wall"


class EngineRow(BaseModel):
    """A policy in a cell."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clock: str = Field(description="wall, or the name of a cost table")
    rule: str
    temperature: float
    concurrency: int
    policy: Policy
    tokens_per_s: float
    ratio_to_draft_free: float
    host_share: float = Field(description="of the time, in neither target nor drafter")
    drafter_share: float
    positions: int
    prefix_hit_rate: float
    identical: bool = Field(description="every trajectory is the draft-free one")

    @property
    def cell(self) -> tuple[str, str, float, int]:
        """What it is compared within."""
        return self.clock, self.rule, self.temperature, self.concurrency


class Slots(BaseModel):
    """How well slots stay filled across shards."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stream_over_single_shard: float | None


class ConcurrencyOne(BaseModel):
    """The automatic budget, one strict sample at a time, beside what fixed trees could reach."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    auto: float | None
    bound: float | None


class EngineDocument(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machine: Machine
    rows: tuple[EngineRow, ...]
    slots: Slots
    concurrency_1: ConcurrencyOne


class Verdict(BaseModel):
    """The automatic budget against the others of its cells, on one clock."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clock: str
    mean_over_best: float = Field(description="geometric mean")
    worst_over_best: float
    worst_over_draft_free: float


def verdicts(rows: tuple[EngineRow, ...]) -> list[Verdict]:
    """One for each clock with an automatic budget; the best of a cell may be that budget itself."""
    by_clock: dict[str, list[tuple[float, float]]] = {}
    for auto in (row for row in rows if row.policy == "auto"):
        best = max(row.tokens_per_s for row in rows if row.cell == auto.cell)
        ratios = (auto.tokens_per_s / best, auto.ratio_to_draft_free)
        by_clock.setdefault(auto.clock, []).append(ratios)
    return [
        Verdict(
            clock=clock,
            mean_over_best=math.exp(sum(math.log(best) for best, _ in found) / len(found)),
            worst_over_best=min(best for best, _ in found),
            worst_over_draft_free=min(free for _, free in found),
        )
        for clock, found in by_clock.items()
    ]


def write_engine_document(document: EngineDocument, path: Path) -> None:
    """Write it with one line to a row."""
    rows = ",\n".join(row.model_dump_json() for row in document.rows)
    rest = (
        f'"slots": {document.slots.model_dump_json()},\n'
        f'"concurrency_1": {document.concurrency_1.model_dump_json()}'
    )
    text = f'{{"machine": {document.machine.model_dump_json()},\n"rows": [\n{rows}\n],\n{rest}}}\n'
    path.write_text(text, encoding="utf-8")


def read_engine_document(path: Path) -> EngineDocument:
    """Read and check it.

    Raises:
        DocumentError: missing, or not of this format.
    """
    if not path.is_file():
        raise DocumentError(f"{path} is missing: make it with `python -m benchmarks.engine`")
    try:
        return EngineDocument.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DocumentError(
            f"{path} is not a result of the engine benchmark ({where}: {first['msg']}): "
            "measure again"
        ) from None
