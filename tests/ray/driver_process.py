"""A driver in a process of its own, to be signalled and killed: `driver_process.py STORE SETTINGS`.

The last line of stdout is the result; everything that is said goes to stderr.
"""

import json
import sys
import warnings
from typing import Any

import jobs.driver.rivals
from jobs.driver import run_job
from jobs.errors import JobError
from jobs.progress import PlainProgress
from manifests.job_running import Cluster
from manifests.plan import read_plan
from manifests.store import open_store


def command(
    store_uri: str,
    *,
    cluster: dict[str, Any],
    take_over: bool = False,
    no_rivals: bool = False,
) -> list[str]:
    """How to start one."""
    settings = {"cluster": cluster, "take_over": take_over, "no_rivals": no_rivals}
    return [sys.executable, __file__, store_uri, json.dumps(settings)]


def main(store_uri: str, settings: dict[str, Any]) -> int:
    """Run the planned job there; exit codes are those of the command."""
    if settings["no_rivals"]:
        jobs.driver.rivals.WATCH_S = 0.0
    store = open_store(store_uri)
    plan = read_plan(store)
    job = plan.job.model_copy(update={"cluster": Cluster(**settings["cluster"])})
    progress = PlainProgress(sys.stderr)
    try:
        result = run_job(store, plan, job, progress, take_over=settings["take_over"])
    except JobError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps({"outcome": result.outcome, "before": result.num_before}))
    return result.exit_code


if __name__ == "__main__":
    warnings.simplefilter("error")
    raise SystemExit(main(sys.argv[1], json.loads(sys.argv[2])))
