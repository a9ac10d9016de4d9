"""A run that finds ten thousand shards finished: the time until it gives the first shard out.

Ray is left out: the workers are there at once. All records are read before the seal, beside the
work; the time until the last one was read is not part of the figure.
"""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest import mock

import jobs.driver.run
from benchmarks.driver_jobs import encoded_records, planned_job
from jobs.driver import run_job
from jobs.driver.notices import Joined, Notice, Placed
from jobs.progress import NoProgress
from manifests.plan import read_plan
from manifests.store import Store, open_store
from tests.s3_server import running_server
from workers.attempt import ShardOrder

NUM_FINISHED = 10_000
WRITERS = 8


class FirstAssignmentError(Exception):
    """The figure is taken; the run need not go on."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = time.perf_counter()


class InstantPool:
    """Workers that are there at once, and a stop at the first shard."""

    num_ready = 1

    def __init__(self, settings: object) -> None:
        self._notices: list[Notice] = []

    def start(self, worker: str) -> None:
        """It is there."""
        self._notices += [Placed(worker=worker, node="node"), Joined(worker=worker)]

    def assign(self, worker: str, order: ShardOrder) -> None:
        """What was waited for."""
        raise FirstAssignmentError

    def end_all(self) -> None:
        """Nobody is there."""

    def poll(self, timeout_s: float) -> list[Notice]:
        """What has come up."""
        notices, self._notices = self._notices, []
        return notices


class NoNodes:
    """No cluster."""

    def draining(self) -> dict[str, float | None]:
        """None."""
        return {}


def resume_s_local(folder: Path) -> float:
    """On the local store."""
    return _resume_s(folder, uri=None)


def resume_s_s3(folder: Path) -> float:
    """On a real S3 server process of this machine."""
    with running_server() as server, mock.patch.dict(os.environ, server.environment):
        return _resume_s(folder, uri=f"s3://{server.new_bucket()}/job")


def _resume_s(folder: Path, *, uri: str | None) -> float:
    planned = planned_job(folder, num_shards=NUM_FINISHED + 1, uri=uri)
    _finish(planned.store, encoded_records(planned.plan, num_records=NUM_FINISHED))
    with _without_ray():
        began = time.perf_counter()
        store = open_store(planned.store.uri)
        plan = read_plan(store)
        try:
            run_job(store, plan, plan.job, NoProgress())
        except FirstAssignmentError as stop:
            return stop.reached - began
    raise AssertionError("no shard was given out")


def _finish(store: Store, records: list[tuple[str, bytes]]) -> None:
    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(lambda record: store.put_if_absent(*record), records))


@contextmanager
def _without_ray() -> Iterator[None]:
    with (
        mock.patch.object(jobs.driver.run, "ray_cluster", return_value=nullcontext()),
        mock.patch.object(jobs.driver.run, "RayPool", InstantPool),
        mock.patch.object(jobs.driver.run, "RayNodes", NoNodes),
    ):
        yield
