"""How long planning takes and how much memory it needs: many short rows, from JSONL and Parquet.

Each form is staged by a child process of its own, whose peak memory is that of planning alone. Rows
have ids of their own, so that the search for duplicates is part of it.

    python -m benchmarks.plan --rows 5000000
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.staging import stage_input
from manifests.job import JobSpec

FORMS = ("jsonl", "parquet")
LIMIT_BYTES = 1 << 30
_BATCH_ROWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """What planning one input took."""

    form: str
    rows: int
    shards: int
    input_bytes: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def write_input(path: Path, rows: int) -> None:
    """Short rows: an id, a prompt of about 60 characters, a carried column."""
    if path.suffix == ".jsonl":
        with path.open("w") as file:
            for batch in _batches(rows):
                file.writelines(json.dumps(row) + "\n" for row in batch)
        return
    schema = pa.schema({"id": pa.string(), "prompt": pa.string(), "family": pa.string()})
    with pq.ParquetWriter(path, schema) as writer:
        for batch in _batches(rows):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))


def _batches(rows: int) -> Iterator[list[dict[str, str]]]:
    for start in range(0, rows, _BATCH_ROWS):
        yield [_row(number) for number in range(start, min(rows, start + _BATCH_ROWS))]


def _row(number: int) -> dict[str, str]:
    prompt = f"Translate sentence {number} of the collection into plain words, please."
    return {"id": f"row-{number:09d}", "prompt": prompt, "family": "abcd"[number % 4]}


def plan(path: Path) -> Planning:
    """Stage an input in this process."""
    job = JobSpec.model_validate(
        {
            "input": {"uri": str(path), "columns": {"id": "id"}},
            "target": {"path": "/none"},
            "output": {"uri": "/none"},
        }
    )
    began, began_cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        staged = stage_input(job, Path(folder))
    return Planning(
        form=path.suffix.removeprefix("."),
        rows=staged.rows,
        shards=len(staged.shards),
        input_bytes=path.stat().st_size,
        seconds=time.perf_counter() - began,
        cpu_seconds=time.process_time() - began_cpu,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def measure(form: str, rows: int, folder: Path) -> Planning:
    """Write an input and plan it in a child process."""
    path = folder / f"rows.{form}"
    write_input(path, rows)
    command = [sys.executable, "-m", "benchmarks.plan", "--plan", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    path.unlink()
    return Planning(**json.loads(done.stdout))


def main() -> None:
    """Measure both forms, print a line for each, and fail above the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--plan", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plan is not None:
        print(json.dumps(asdict(plan(options.plan))))
        return
    with tempfile.TemporaryDirectory() as folder:
        results = [measure(form, options.rows, Path(folder)) for form in FORMS]
    for found in results:
        print(
            f"{found.form}: {found.rows} rows ({found.input_bytes / 2**20:.0f} MiB) in "
            f"{found.shards} shards, {found.seconds:.0f} s ({found.cpu_seconds:.0f} s of CPU), "
            f"peak memory {found.peak_bytes / 2**20:.0f} MiB"
        )
    if max(found.peak_bytes for found in results) >= LIMIT_BYTES:
        sys.exit(f"the peak is not below {LIMIT_BYTES / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
