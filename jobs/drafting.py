"""Making a drafter: collect trajectories, train the order model, evaluate it.

Collection is resumable: each file holds the trajectories of a fixed group of rows and appears
whole; groups whose file is there are skipped.
"""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from jobs.errors import JobError
from jobs.inputs.base import input_path, read_input
from jobs.inputs.rows import stage_rows
from manifests.job import JobSpec
from manifests.staged import StagedRow

ROWS_PER_FILE = 64
META = "collection.json"


def rows_of(job: JobSpec) -> Iterator[StagedRow]:
    """The job's rows, normalised as planning does."""
    path = input_path(job.input.uri)
    columns = job.input.columns
    raw = islice(read_input(path, columns), job.input.limit)
    return iter(stage_rows(raw, columns=columns, name=path.name))


def collect(job: JobSpec, out: Path, *, report: Callable[[int, int], None]) -> int:
    """Decode the job's rows without drafts and keep their trajectories under ``out``.

    ``report`` gets (rows done, trajectories) after each file. Returns the number of files.

    Raises:
        JobError: ``out`` holds a collection of another job.
    """
    from workers.collection import Collector

    out.mkdir(parents=True, exist_ok=True)
    collector = Collector(job)
    _claim(out, job, block_length=collector.block_length)
    first = files = total = 0
    for group in _groups(rows_of(job)):
        path = out / f"trajectories-{files:05d}.safetensors"
        if not path.is_file():
            total += collector.collect(group, first=first, path=path)
        first, files = first + len(group), files + 1
        report(first, total)
    return files


def _groups(rows: Iterator[StagedRow]) -> Iterator[list[StagedRow]]:
    while group := list(islice(rows, ROWS_PER_FILE)):
        yield group


def _claim(out: Path, job: JobSpec, *, block_length: int) -> None:
    """Say what is collected here; refuse to mix two collections in one directory."""
    said: dict[str, Any] = {
        "target": Path(job.target.path).name,
        "data": Path(job.input.uri).name,
        "block_length": block_length,
        "decode": job.decode.model_dump(mode="json", exclude={"draft_budget", "gamma"}),
        "seed": job.seed.value,
        "limit": job.input.limit,
    }
    path = out / META
    if path.is_file() and json.loads(path.read_text()) != said:
        raise JobError(
            f"{path} belongs to a collection with other settings: choose another directory"
        )
    path.write_text(json.dumps(said, indent=2, sort_keys=True) + "\n")


def collection(data: Path) -> tuple[dict[str, Any], list[Path]]:
    """What a directory of trajectories says about itself, and its files.

    Raises:
        JobError: there is no collection in it.
    """
    files = sorted(data.glob("trajectories-*.safetensors"))
    if not files or not (data / META).is_file():
        raise JobError(f"{data} holds no trajectories: make them with `spotbatch drafter collect`")
    said: dict[str, Any] = json.loads((data / META).read_text())
    return said, files


def accuracy_lines(rows: Any) -> list[str]:
    """A table of held-out accuracy by depth."""
    from spot.training.evaluate import mean_accuracy

    lines = [f"{'depth':>5} {'examples':>9} {'order model':>12} {'stale confidence':>17}"]
    for row in rows:
        lines.append(_line(row.depth, row.examples, row.order_model, row.stale_confidence))
    total = sum(row.examples for row in rows)
    return [*lines, _line("all", total, *mean_accuracy(rows))]


def _line(depth: int | str, examples: int, order_model: float, stale: float) -> str:
    return f"{depth:>5} {examples:>9} {order_model:>12.3f} {stale:>17.3f}"
