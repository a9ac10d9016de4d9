"""A driver in a process of its own, to be signalled and killed: `driver_process.py STORE WORKERS`.

The last line of stdout is the result; everything that is said goes to stderr.
"""

import json
import sys
import warnings

from jobs.driver import run_job
from jobs.progress import PlainProgress
from manifests.job import Cluster
from manifests.plan import read_plan
from manifests.store import open_store


def main(store_uri: str, num_workers: int) -> int:
    """Run the planned job there on a local Ray."""
    store = open_store(store_uri)
    plan = read_plan(store)
    job = plan.job.model_copy(update={"cluster": Cluster(workers=num_workers)})
    result = run_job(store, plan, job, PlainProgress(sys.stderr))
    print(json.dumps({"outcome": result.outcome, "before": result.num_before}))
    return result.exit_code


if __name__ == "__main__":
    warnings.simplefilter("error")
    raise SystemExit(main(sys.argv[1], int(sys.argv[2])))
