"""The Ray actor: one process life of one worker, with one engine and up to two shards in flight.

The driver calls `report` first, then `start`, then `run_shard` from a group of its own with as many
threads as there are leases; `heartbeat` has its own thread and answers while all others are busy.
Nothing here decides anything: shards come from the driver, truth goes to storage. Results are small
values; errors travel as text, so that no exception type has to be known on the other side.

This class is plain: the driver makes it an actor (`jobs.driver.pool`), tests call it directly.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from manifests.access import Nonce, prove_access
from manifests.fingerprints import FileIdentity
from manifests.job import JobSpec
from manifests.open_revision import numbered_revision
from manifests.plan import Plan, plan_hash, read_plan
from manifests.store import open_store
from workers.attempt import Attempt, AttemptRunner, ShardOrder, ShardOutcome
from workers.attempt_log import log_folder, publish_orphans
from workers.environment import (
    EnvironmentReport,
    claim_numerics,
    current_node,
    numerics_class,
    report_environment,
)
from workers.errors import VersionError, describe
from workers.gate import Gate
from workers.model_files import checked_models
from workers.stream import SampleStream, Totals
from workers.work import open_work

LEAVE_S = 30.0
EXIT_DEAD_ENGINE = 70
SHARDS_GROUP = "shards"
HEARTBEAT_GROUP = "heartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """Everything a worker is told when it is made."""

    name: str
    store_uri: str
    plan_sha256: str
    job_json: str
    """This run's job specification: its operational fields may differ from the plan's, and what
    the open revision overrides does."""
    nonce: Nonce
    drafter_files: tuple[FileIdentity, ...]
    """The drafter as this run found it; where drafts decide nothing, it may have changed."""
    revision: int = 0
    """What the job has open; 0 is the first run."""
    epoch: str = ""
    """The driver's."""
    gate_folder: str | None = None
    """Tests only; see `workers.gate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a worker is, and what it would run there."""

    environment: EnvironmentReport
    node: str
    """Ray's id of the node; empty outside Ray."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOutcome:
    """Whether the worker can take shards, or else why not."""

    refusal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What a worker is doing; for supervision and display, never for truth."""

    running: tuple[Attempt, ...]
    num_steps: int
    totals: Totals


def _exit_dead() -> None:
    os._exit(EXIT_DEAD_ENGINE)


class Worker:
    """Decodes shards; see the module's text for who calls what."""

    def __init__(self, config: WorkerConfig, *, leave: Callable[[], object] = _exit_dead) -> None:
        self._config = config
        self._leave = leave
        self._environment: EnvironmentReport | None = None
        self._stream: SampleStream | None = None
        self._runner: AttemptRunner | None = None

    def report(self) -> Placement:
        """Which packages and versions this process has, and where; before anything is loaded."""
        self._environment = report_environment()
        return Placement(environment=self._environment, node=current_node())

    def start(self) -> StartOutcome:
        """Load what the work needs and begin to take shards."""
        try:
            self._start()
        except Exception as error:
            return StartOutcome(refusal=describe(error))
        return StartOutcome()

    def _start(self) -> None:
        config, environment = self._config, self._environment or self.report().environment
        job = JobSpec.model_validate_json(config.job_json)
        store = open_store(config.store_uri, job.storage)
        prove_access(store, config.nonce, worker=config.name)
        plan = read_plan(store)
        if plan_hash(plan) != config.plan_sha256:
            raise VersionError(f"worker {config.name} reads another plan at {config.store_uri}")
        revision = numbered_revision(store, plan, config.revision)
        plan = revision.plan
        work = open_work(plan.model_copy(update={"job": job}), job=self._local(job, plan=plan))
        if work.dtype is not None:
            mine = numerics_class(job, dtype=work.dtype)
            claim_numerics(store, mine, worker=config.name)
        publish_orphans(store, log_folder(plan.job_id))
        self._stream = SampleStream(work, gate=Gate(config.gate_folder), clock=time.monotonic)
        self._runner = AttemptRunner(
            store,
            plan=plan,
            job=job,
            stream=self._stream,
            worker=f"{config.name}@{environment.process.host}",
            versions=environment.versions,
            revision=revision,
            epoch=config.epoch,
        )
        threading.Thread(target=self._stream.run, name="decode", daemon=True).start()

    def _local(self, job: JobSpec, *, plan: Plan) -> JobSpec:
        """The job with models on this node, compared with the plan before one is loaded."""
        if plan.job.work == "null":
            return job
        return checked_models(job, target=plan.target_files, drafter=self._config.drafter_files)

    def run_shard(self, order: ShardOrder) -> ShardOutcome:
        """One attempt at a shard, to its end. A dead engine ends the process soon afterwards."""
        assert self._runner is not None, "run_shard before start"
        outcome = self._runner.run(order)
        if not outcome.is_worker_usable:
            self._leave_soon()
        return outcome

    def _leave_soon(self) -> None:
        """The driver ends this process when it reads the outcome; if it never does, we do."""
        timer = threading.Timer(LEAVE_S, self._leave)
        timer.daemon = True
        timer.start()

    def heartbeat(self) -> Heartbeat:
        """What this worker is doing now."""
        if self._stream is None or self._runner is None:
            return Heartbeat(running=(), num_steps=0, totals=Totals())
        return Heartbeat(
            running=self._runner.running(),
            num_steps=self._stream.num_steps,
            totals=self._stream.totals,
        )

    def stop(self) -> None:
        """Take no more shards and end the decoding thread."""
        if self._stream is not None:
            self._stream.stop()
