"""Forwards and seconds with drafts against draft-free decoding: identity first, benchmark second.

``python -m benchmarks.decoding [--json FILE] [--samples N] [--threads N]`` decodes held-out prompts
with the bundled target in one process, at batch 1 and 8, with budgets 0, 8, 20 and auto. Every row
says whether its trajectories are identical to the draft-free ones.
"""

import argparse
import json
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import torch

from examples.tiny.splits import problems
from manifests.hashing import hash64
from manifests.job import JobSpec
from manifests.staged import StagedRow
from workers.runtime import Runtime, load_runtime
from workers.samples import SampleRequest, SampleResult

TINY = Path(__file__).parents[1] / "examples" / "tiny"
MAX_TOKENS = 160
Budget = int | Literal["auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured setting; ``wall_ratio`` above 1 is faster than budget 0 at the same batch."""

    temperature: float
    batch: int
    budget: Budget
    samples: int
    nfe: float
    transitions: float
    reduction: float
    accepted_per_round: float
    tokens_per_s: float
    wall_ratio: float
    identical: bool


def _job(*, temperature: float, batch: int, budget: Budget, threads: int) -> JobSpec:
    return JobSpec.model_validate(
        {
            "input": {"uri": "unused"},
            "output": {"uri": "unused", "trace": "commits"},
            "target": {"path": str(TINY / "target")},
            "drafter": {"path": str(TINY / "drafter")},
            "decode": {
                "temperature": temperature,
                "max_tokens": MAX_TOKENS,
                "draft_budget": budget,
            },
            "cluster": {"batch": batch, "threads": threads},
        }
    )


def _prompts(num_samples: int) -> list[StagedRow]:
    chosen = islice(problems("held_out", seed=77), num_samples)
    return [StagedRow(row=i, id=str(i), prompt=p.prompt) for i, p in enumerate(chosen)]


def _decode(runtime: Runtime, rows: Sequence[StagedRow]) -> tuple[list[SampleResult], float]:
    for row in rows:
        request = SampleRequest(
            shard=0,
            row=row.row,
            sample=0,
            prompt_ids=runtime.encode(row),
            key=hash64("benchmark", row.row),
            max_tokens=MAX_TOKENS,
        )
        runtime.engine.add(request)
    began, results = time.perf_counter(), []
    while runtime.engine.has_work():
        results += runtime.engine.step()
    return sorted(results, key=lambda r: r.request.row), time.perf_counter() - began


def _measure(
    rows: Sequence[StagedRow], *, temperature: float, batch: int, threads: int
) -> list[Row]:
    """All budgets at one temperature and batch, draft-free first."""
    measured: list[Row] = []
    control: list[SampleResult] = []
    control_s = 0.0
    budgets: tuple[Budget, ...] = (0, 8, 20, "auto")
    for budget in budgets:
        job = _job(temperature=temperature, batch=batch, budget=budget, threads=threads)
        results, seconds = _decode(load_runtime(job), rows)
        if budget == 0:
            control, control_s = results, seconds
        num, nfe = len(results), sum(r.nfe for r in results)
        transitions = sum(r.transitions for r in results)
        row = Row(
            temperature=temperature,
            batch=batch,
            budget=budget,
            samples=num,
            nfe=nfe / num,
            transitions=transitions / num,
            reduction=transitions / nfe,
            accepted_per_round=sum(r.accepted for r in results) / nfe,
            tokens_per_s=sum(r.tokens_with_stop for r in results) / seconds,
            wall_ratio=control_s / seconds,
            identical=[r.trace for r in results] == [r.trace for r in control],
        )
        measured.append(row)
        print(_line(row), flush=True)
    return measured


def _line(row: Row) -> str:
    return (
        f"T {row.temperature:g}  batch {row.batch}  budget {row.budget!s:>4}  "
        f"forwards {row.nfe:6.1f}  draft-free {row.transitions:6.1f}  {row.reduction:5.2f}x fewer  "
        f"{row.tokens_per_s:7.1f} tok/s  {row.wall_ratio:5.2f}x as fast  "
        f"{'identical' if row.identical else 'DIFFERENT'}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; exit 1 if any output differs."""
    parser = argparse.ArgumentParser(description="Forwards and seconds with and without drafts.")
    parser.add_argument("--json", type=Path, help="write the rows here as well")
    parser.add_argument("--samples", type=int, default=24, help="held-out prompts")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    options = parser.parse_args(arguments)
    prompts = _prompts(options.samples)
    measured = [
        row
        for temperature in (0.0, 1.0)
        for batch in (1, 8)
        for row in _measure(prompts, temperature=temperature, batch=batch, threads=options.threads)
    ]
    if options.json:
        machine = {"processor": platform.processor() or platform.machine()}
        machine |= {"torch": torch.__version__, "threads": options.threads}
        document = {"machine": machine, "rows": [asdict(row) for row in measured]}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if not all(row.identical for row in measured):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
