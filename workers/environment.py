"""Where a worker runs: which packages it imported, and which bits its device computes.

Two checks before any weight is loaded. *Versions*: the five packages have generic names, so each
process reports where it would import them from and a digest of their sources; a worker that differs
from the driver is refused in one sentence. *Numerics*: the first worker creates `numerics.json`;
every later one must compute the same bits or is refused by name. Ray and torch are imported only
where their facts are asked for.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from manifests.documents import Document, encode, read_document
from manifests.errors import RefusedError, UnknownOutcomeError
from manifests.job import JobSpec
from manifests.keys import numerics_key
from manifests.store.base import Store
from workers.errors import NumericsError, VersionError

PACKAGES = ("jobs", "workers", "spot", "schedulers", "manifests")
DISTRIBUTIONS = ("spotbatch", "ray", "torch")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageReport:
    """Where a package comes from, and what is in it."""

    path: str
    sources: str
    """SHA-256 over the names and contents of its Python files, shortened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """One process life: a process id alone may name another process later."""

    host: str
    pid: int
    created: float
    """When the process was created, as the operating system says."""


def this_process() -> ProcessIdentity:
    """The calling process."""
    created = psutil.Process().create_time()
    return ProcessIdentity(host=socket.gethostname(), pid=os.getpid(), created=created)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentReport:
    """What a process says about itself before it does anything."""

    process: ProcessIdentity
    packages: dict[str, PackageReport]
    versions: dict[str, str]


def report_environment() -> EnvironmentReport:
    """What this process would import; loads none of the packages."""
    versions = {name: _distribution_version(name) for name in DISTRIBUTIONS}
    return EnvironmentReport(
        process=this_process(),
        packages={name: _package_report(name) for name in PACKAGES},
        versions={"python": platform.python_version(), **versions},
    )


def current_node() -> str:
    """Ray's id of the node that this process runs on; empty outside Ray."""
    import ray

    return str(ray.get_runtime_context().get_node_id()) if ray.is_initialized() else ""


def check_environment(worker: EnvironmentReport, *, name: str, driver: EnvironmentReport) -> None:
    """Refuse a worker that runs other code than the driver; the first difference is named."""
    for sentence in _differences(worker, name=name, driver=driver):
        raise VersionError(sentence)


def _differences(
    worker: EnvironmentReport, *, name: str, driver: EnvironmentReport
) -> Iterator[str]:
    where = f"worker {name} on {worker.process.host}"
    for package, ours in driver.packages.items():
        theirs = worker.packages.get(package)
        if theirs is None or theirs.sources != ours.sources:
            found = "nothing" if theirs is None else f"{theirs.path} (sources {theirs.sources})"
            yield (
                f"{where} imports `{package}` from {found}, but the driver from {ours.path} "
                f"(sources {ours.sources}); install the same spotbatch release on every node"
            )
    for distribution, version in driver.versions.items():
        other = worker.versions.get(distribution, "missing")
        if other != version:
            yield (
                f"{where} runs {distribution} {other}, but the driver {version}; "
                f"install the same versions on every node"
            )


def _distribution_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def _package_report(name: str) -> PackageReport:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return PackageReport(path="nowhere", sources="missing")
    folder = Path(spec.origin).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\n{len(content)}\n".encode())
        digest.update(content)
    return PackageReport(path=str(folder), sources=digest.hexdigest()[:12])


class NumericsClass(Document):
    """What decides the last bits of a product; stored as `numerics.json`."""

    version: Literal[1] = 1
    device: str
    instruction_set: str
    numerics: Literal["invariant", "fast"]
    dtype: str
    tensor_parallel: int = 1
    torch: str
    blas: str
    threads: int
    """Recorded only in invariant mode, where results are equal for every number of threads."""


def numerics_class(job: JobSpec, *, dtype: str) -> NumericsClass:
    """This process's class."""
    import torch

    on_gpu = job.target.device == "cuda"
    return NumericsClass(
        device=torch.cuda.get_device_name() if on_gpu else _processor_name(),
        instruction_set=_gpu_capability() if on_gpu else torch.backends.cpu.get_cpu_capability(),
        numerics=job.decode.numerics,
        dtype=dtype,
        tensor_parallel=job.cluster.tensor_parallel,
        torch=torch.__version__,
        blas=_blas_name(torch.__config__.show()),
        threads=job.cluster.threads,
    )


def _gpu_capability() -> str:
    import torch

    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}, CUDA {torch.version.cuda}"


def claim_numerics(store: Store, mine: NumericsClass, *, worker: str) -> None:
    """Create the job's numerics class, or compare with the one that is there."""
    try:
        store.put_if_absent(numerics_key(), encode(mine))
    except (RefusedError, UnknownOutcomeError):
        _compare(mine, theirs=read_document(store, NumericsClass, numerics_key()), worker=worker)


def _compare(mine: NumericsClass, *, theirs: NumericsClass, worker: str) -> None:
    free = {"threads"} if mine.numerics == "invariant" else set()
    for field in NumericsClass.model_fields:
        here, there = getattr(mine, field), getattr(theirs, field)
        if field not in free and here != there:
            raise NumericsError(
                f"worker {worker} has {field} {here!r}, but the job was begun with {there!r}, "
                f"so its samples could differ; use machines of one kind or a new output.uri"
            )


def _processor_name() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _blas_name(torch_configuration: str) -> str:
    """The libraries that torch computes with, from its build summary."""
    names = ("Math Kernel Library", "MKL-DNN", "OpenBLAS")
    lines = [line.strip(" -") for line in torch_configuration.splitlines()]
    return "; ".join(line for line in lines if any(name in line for name in names)) or "unknown"
