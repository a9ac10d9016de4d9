"""Whole runs on Ray with null rows: real Parquet files and commit records a second.

Measured from the first commit record to the last one, as they say themselves; Ray's start is left
out. The slow store waits 100 ms in every call, in the driver and in the workers.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any

from benchmarks.driver_jobs import planned_job
from jobs.driver import run_job
from jobs.planning import PlannedJob
from jobs.progress import NoProgress
from manifests.job_running import Cluster
from manifests.protocol import read_records
from manifests.store import LocalStore

NUM_SHARDS = 1_000
NUM_SLOW_SHARDS = 300
NUM_WORKERS = 2
CAPACITY = 8
DELAY_S = 0.1
CALLS = ("put_if_absent", "put_file_if_absent", "put_advisory", "get", "list", "open_local")
HOOKS = Path(__file__).resolve().parent / "slow_store"


def commits_per_s(folder: Path) -> float:
    """On the local store as it is."""
    return _rate(planned_job(folder, num_shards=NUM_SHARDS), env={})


def commits_per_s_slow_store(folder: Path) -> float:
    """On a local store that takes its time."""
    planned = planned_job(folder, num_shards=NUM_SLOW_SHARDS)
    with _slow_here():
        return _rate(planned, env={"PYTHONPATH": str(HOOKS), "STORE_DELAY_S": str(DELAY_S)})


def _rate(planned: PlannedJob, *, env: dict[str, str]) -> float:
    job = planned.plan.job.model_copy(update={"cluster": Cluster(workers=NUM_WORKERS, env=env)})
    result = run_job(planned.store, planned.plan, job, NoProgress(), capacity=CAPACITY)
    assert result.outcome == "sealed", result
    records = read_records(planned.store, planned.plan).values()
    times = sorted(datetime.fromisoformat(record.committed).timestamp() for record in records)
    return (len(times) - 1) / (times[-1] - times[0])


@contextmanager
def _slow_here() -> Iterator[None]:
    """This process's local stores wait too."""
    originals = {name: getattr(LocalStore, name) for name in CALLS}
    for name, original in originals.items():
        setattr(LocalStore, name, delayed(original, delay_s=DELAY_S))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(LocalStore, name, original)


def delayed(method: Any, *, delay_s: float) -> Any:
    """The method after a pause."""

    @wraps(method)
    def call(*arguments: Any) -> Any:
        time.sleep(delay_s)
        return method(*arguments)

    return call
