"""The groups of a job file that say how a job is run: shards, cluster, storage, retry."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from manifests.settings import Group, Positive, drafting, operational, semantic

Seconds = Annotated[float, Field(gt=0.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
_SECRET_NAME = re.compile(r"SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|ACCESS_KEY|API_KEY", re.I)


class Shards(Group):
    """How rows are cut."""

    rows: Positive = semantic(64, "rows per shard")


class Cluster(Group):
    """Where the job runs."""

    address: str | None = operational(
        None, "address of a Ray cluster; without it a local one is started"
    )
    workers: Positive = operational(1, "actors, each with one target")
    # Sequences of a forward share what may be drafted in it.
    batch: Positive = drafting(8, "sequences decoded together by one worker")
    threads: Positive = operational(1, "CPU threads per worker")
    tensor_parallel: Positive = operational(
        1,
        "processes (GPUs) on one machine that share a worker's target; a job's workers must agree "
        "(numerics class)",
    )
    max_gpu_hours: Annotated[float, Field(gt=0.0)] | None = operational(
        None,
        "GPU hours of all runs of the job together, after which a run drains; raise it to go on; a "
        "worker without a GPU counts as one",
    )
    cpus_per_worker: Annotated[float, Field(gt=0.0)] | None = operational(
        None, "CPUs that Ray reserves for a worker (count); without it, its processes' `threads`"
    )
    gpus_per_worker: Annotated[float, Field(ge=0.0)] = operational(
        0.0, "GPUs that Ray reserves for a worker (count)"
    )
    env: dict[str, str] = operational({}, "environment variables of every worker; no credentials")
    py_modules: tuple[str, ...] = operational(
        (), "local directories or wheels that Ray ships to every worker"
    )
    start_timeout_s: Seconds = operational(
        600.0, "how long to wait while no worker at all has a place (seconds)"
    )

    @property
    def reserved_cpus(self) -> float:
        """CPUs that Ray reserves for a worker."""
        mine = self.threads * self.tensor_parallel
        return mine if self.cpus_per_worker is None else self.cpus_per_worker

    @field_validator("address")
    @classmethod
    def _address_is_no_client(cls, address: str | None) -> str | None:
        if address is not None and address.startswith("ray://"):
            raise ValueError(
                f"cluster.address {address}: a Ray client cannot drive a job, since its actors die "
                "with the connection; run spotbatch on the head node with cluster.address: auto, "
                "or submit it as a Ray job"
            )
        return address

    @field_validator("env")
    @classmethod
    def _env_holds_no_secrets(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if _SECRET_NAME.search(name):
                raise ValueError(
                    f"cluster.env {name}: the plan would store it in the open; give credentials to "
                    "the nodes themselves, by profile, role or their own environment"
                )
        return env


class Storage(Group):
    """How S3 is reached; credentials come from the environment, profile or role of each process."""

    endpoint: str | None = operational(
        None, "URL of an S3-compatible server; without it AWS, or AWS_ENDPOINT_URL of the process"
    )
    region: str | None = operational(
        None, "region of the buckets; without it what the process is configured with"
    )
    profile: str | None = operational(None, "named AWS profile that every process has")
    addressing: Literal["auto", "path", "virtual"] = operational(
        "auto", "where requests name the bucket: in the path, or in the host name"
    )
    checksums: Literal["when_supported", "when_required"] = operational(
        "when_supported", "`when_required` for servers that reject additional checksums"
    )
    connect_timeout_s: Seconds = operational(5.0, "until a connection stands (seconds)")
    read_timeout_s: Seconds = operational(30.0, "without a byte of the answer (seconds)")
    attempts: Positive = operational(6, "tries of one request, with growing pauses")
    part_mib: Annotated[int, Field(ge=5)] = operational(
        64, "size of the parts in which large files travel (MiB)"
    )
    cache_path: str | None = operational(
        None, "directory of each node for models from S3; without it the user's cache directory"
    )
    cache_gib: Annotated[float, Field(gt=0.0)] = operational(
        100.0, "size at which models that no process uses leave that directory (GiB)"
    )

    @field_validator("endpoint")
    @classmethod
    def _endpoint_is_plain(cls, endpoint: str | None) -> str | None:
        if endpoint is None:
            return None
        parts = urlsplit(endpoint)
        plain = not (parts.username or parts.password or parts.query or parts.fragment)
        if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
            raise ValueError(
                "storage.endpoint must be http://host:port or https://host:port and nothing else; "
                "credentials come from the environment, profile or role of each process"
            )
        return endpoint


class Retry(Group):
    """What is tried again, and for how long anything is waited for."""

    attempts: Positive = operational(3, "attempts per shard before its failure is final")
    infrastructure_attempts: Positive = operational(
        32, "attempts per shard that may be lost to nodes, preemption and storage"
    )
    max_error_fraction: Share = operational(
        0.05, "share of error samples above which a run stops, judged from 200 samples on"
    )
    max_barren_drivers: Positive = operational(
        5, "drivers in a row that may die without one new commit record"
    )
    lease_s: Seconds = operational(
        30.0, "silence of a worker after which others get its shards (seconds)"
    )
    starting_s: Seconds = operational(
        1800.0, "from a worker's having a place to its being ready (seconds)"
    )
    decoding_s: Seconds = operational(120.0, "without a round of the engine (seconds)")
    publishing_s: Seconds = operational(
        600.0, "reading a shard's rows, or publishing its samples (seconds)"
    )
    drain_s: Seconds = operational(300.0, "how long a drain waits for what runs (seconds)")
