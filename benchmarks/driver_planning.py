"""Planning a hundred thousand shards: how much memory a driver takes for them, at its peak."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

NUM_SHARDS = 100_000


class Planned(NamedTuple):
    """What the child process says."""

    num_shards: int
    peak_mib: float


def plan_many_shards(folder: Path) -> Planned:
    """Plan, list what is committed and make the scheduler, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.driver_planning", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Planned(**json.loads(done.stdout))


def main(folder: Path) -> None:
    """The child's part."""
    import resource

    from benchmarks.driver_jobs import planned_job
    from jobs.driver.tracker import Tracker
    from manifests.open_revision import OpenRevision
    from schedulers.machine import Scheduler

    planned = planned_job(folder, num_shards=NUM_SHARDS)
    revision = OpenRevision(store=planned.store, plan=planned.plan)
    before = revision.list_committed()
    tracker = Tracker(plan=planned.plan, shards=revision.shards, before=before)
    scheduler = Scheduler(
        [(shard.shard, shard.expected_cost) for shard in revision.shards], committed=before
    )
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert scheduler.num_pending == len(tracker.shards)
    print(json.dumps({"num_shards": scheduler.num_pending, "peak_mib": round(peak_mib, 1)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
