"""What every test stands on: a scrubbed environment, shared paths, a check for leaked processes.

The environment is scrubbed at import, before any test module can import ray, torch or transformers,
which read theirs once. Child processes inherit it.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings

from tests.s3_server import S3Server, running_server

REPOSITORY = Path(__file__).resolve().parents[1]
# Whoever runs the tests may have these set: credentials, a cluster, thread counts, import paths.
SCRUBBED_PREFIXES = ("AWS_", "HF_", "TRANSFORMERS_", "RAY_", "OMP_", "MKL_", "SPOTBATCH_")
SCRUBBED = ("PYTHONPATH", "PYTHONSTARTUP")
KEPT = ("SPOTBATCH_CHROMIUM",)  # says where a browser is, and changes no result
FIXED = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
LEAVE_S = 20.0  # how long child processes may take to leave after the last test


def scrub_environment() -> None:
    """Remove what could change a result or leak a credential, and fix the rest."""
    for name in list(os.environ):
        if (name.startswith(SCRUBBED_PREFIXES) or name in SCRUBBED) and name not in KEPT:
            del os.environ[name]
    os.environ.update(FIXED)


scrub_environment()
# Caches of models, too, are the tests' own.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="spotbatch-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)
# A deadline would be a timed assertion, and random examples would make a failure unrepeatable.
settings.register_profile(
    "spotbatch", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("spotbatch")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def tiny_target() -> Path:
    """The bundled target's model directory."""
    return REPOSITORY / "examples" / "tiny" / "target"


@pytest.fixture(scope="session")
def tiny_drafter() -> Path:
    """The bundled drafter's directory."""
    return REPOSITORY / "examples" / "tiny" / "drafter"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One S3 server process for all tests; each takes a bucket of its own."""
    with running_server() as server:
        yield server


@pytest.fixture
def s3_bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty bucket that this process and its children can reach."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server.new_bucket()


@pytest.fixture(scope="session")
def cluster_address() -> Iterator[str]:
    """One real Ray cluster with places for two workers; drivers connect and disconnect."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        connect=False,
        head_node_args={
            "num_cpus": 2,
            "num_gpus": 0,
            "include_dashboard": False,
            "object_store_memory": 128 * 1024 * 1024,
        },
    )
    yield cluster.address
    cluster.shutdown()


def living_children() -> list[psutil.Process]:
    """Child processes that a test could have leaked.

    Python's own resource tracker is left out: it lives as long as the interpreter.
    """
    children = psutil.Process().children(recursive=True)
    return [child for child in children if "resource_tracker" not in _command(child)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.fixture(scope="session", autouse=True)
def _no_process_outlives_the_tests() -> Iterator[None]:
    yield
    _, alive = psutil.wait_procs(living_children(), timeout=LEAVE_S)
    leaked = [f"{child.pid}: {_command(child)}" for child in alive]
    assert not leaked, f"processes outlived the tests: {leaked}"
