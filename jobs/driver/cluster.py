"""Ray for one run: a local instance of our own, or a connection to a cluster that is there.

Ray ships the driver's working directory to its workers, where a user's own `jobs` or `workers`
package would shadow ours; so workers get an empty directory that belongs to the driver. Workers'
output stays in Ray's logs: stdout is data. A local instance needs no dashboard, and its object
store is small, since results are.
"""

import logging
import math
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobs.driver.errors import DriverError
from manifests.job_running import Cluster

_OBJECT_STORE_BYTES = 128 * 1024 * 1024
_ENVIRONMENT = {
    # Under `uv run`, Ray would ship the working directory after all.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray's future default; without it Ray warns about devices that we do not have.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


@contextmanager
def ray_cluster(cluster: Cluster) -> Iterator[None]:
    """Ray is up inside; afterwards it is gone, or disconnected if it was there before."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import ray  # reads the variables

    with tempfile.TemporaryDirectory(prefix="spotbatch-empty-") as folder:
        _connect(ray, cluster, runtime_env=_runtime_env(cluster, working_dir=folder))
        try:
            yield
        finally:
            with _quiet():
                ray.shutdown()


def exposure_warning(cluster: Cluster) -> str | None:
    """What to say about a cluster that runs whatever anyone who reaches it sends, if it is one."""
    if cluster.address is None or os.environ.get("RAY_AUTH_MODE") == "token":
        return None
    return (
        "warning: RAY_AUTH_MODE is not `token`, so whoever reaches the cluster's ports can run "
        "code on it; set it on all nodes, or keep the cluster on a private network"
    )


def _runtime_env(cluster: Cluster, *, working_dir: str) -> dict[str, Any]:
    runtime_env: dict[str, Any] = {"working_dir": working_dir, "env_vars": dict(cluster.env)}
    if cluster.py_modules:
        runtime_env["py_modules"] = list(cluster.py_modules)
    return runtime_env


def _connect(ray: Any, cluster: Cluster, *, runtime_env: dict[str, Any]) -> None:
    try:
        with _quiet():
            ray.init(
                **_where(cluster),
                runtime_env=runtime_env,
                namespace=f"spotbatch-{os.getpid()}",
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    except (ConnectionError, TimeoutError) as error:
        place = cluster.address or "this machine"
        raise DriverError(
            f"Ray cannot be reached at {place} ({error}); check cluster.address"
        ) from error
    except Exception as error:
        if type(error) is not Exception:  # what Ray raises when its processes come up too late
            raise
        first_line = str(error).partition("\n")[0]
        raise DriverError(
            f"Ray did not start here ({first_line}); nothing was decoded, run it again when the "
            "machine is less busy"
        ) from error


def _where(cluster: Cluster) -> dict[str, Any]:
    if cluster.address is not None:
        return {"address": cluster.address}
    cpus = cluster.reserved_cpus
    gpus: dict[str, Any] = {} if cluster.gpus_per_worker else {"num_gpus": 0}
    return {
        "address": "local",
        "num_cpus": math.ceil(cluster.workers * cpus),
        **gpus,
        "include_dashboard": False,
        "object_store_memory": _OBJECT_STORE_BYTES,
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray's own warnings are for Ray's developers, whatever the warning filters say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
