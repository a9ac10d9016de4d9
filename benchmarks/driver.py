"""How fast the driver is: `python -m benchmarks.driver --json FILE`.

Every figure is taken from the parts that a real run uses. What a figure leaves out is said where it
is measured. `--only` takes some of the figures; the file always has all names, None where a figure
was not taken.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.driver_commits import commits_per_s, commits_per_s_slow_store
from benchmarks.driver_core import core_events_per_s
from benchmarks.driver_planning import plan_many_shards
from benchmarks.driver_ray import shards_per_s
from benchmarks.driver_resume import resume_s_local, resume_s_s3
from benchmarks.machine import describe_machine

FIGURES = (
    "core_events_per_s",
    "shards_per_s",
    "commits_per_s",
    "commits_per_s_slow_store",
    "shards_planned",
    "driver_peak_mib",
    "resume_s_local",
    "resume_s_s3",
)


def _planning(folder: Path) -> dict[str, float]:
    planned = plan_many_shards(folder)
    return {"shards_planned": planned.num_shards, "driver_peak_mib": planned.peak_mib}


def _single(name: str, measure: Callable[[Path], float]) -> Callable[[Path], dict[str, float]]:
    return lambda folder: {name: measure(folder)}


MEASURES: dict[str, Callable[[Path], dict[str, float]]] = {
    "core": _single("core_events_per_s", lambda folder: core_events_per_s()),
    "ray": _single("shards_per_s", shards_per_s),
    "commits": _single("commits_per_s", commits_per_s),
    "slow": _single("commits_per_s_slow_store", commits_per_s_slow_store),
    "planning": _planning,
    "resume": _single("resume_s_local", resume_s_local),
    "resume-s3": _single("resume_s_s3", resume_s_s3),
}


def measured(names: list[str]) -> dict[str, float]:
    """The figures of these measures, each in a folder of its own."""
    figures: dict[str, float] = {}
    for name in names:
        with tempfile.TemporaryDirectory(prefix="spotbatch-bench-") as folder:
            figures |= MEASURES[name](Path(folder))
        print(f"{name}: done", file=sys.stderr, flush=True)
    return figures


def main() -> int:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.driver")
    parser.add_argument("--json", type=Path, required=True, help="where the figures go")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
    arguments = parser.parse_args()
    figures = measured(arguments.only)
    document: dict[str, object] = {"machine": describe_machine().model_dump()}
    document |= {name: figures.get(name) for name in FIGURES}
    arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    print(json.dumps(document, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
