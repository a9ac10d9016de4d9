"""Where a job stands, from its own directory alone: no cluster is asked.

States: **planned** (nothing is committed, no driver has spoken), **running** (a driver spoke within
`STALE_S` seconds), **stopped** (no driver speaks, shards are missing; `spotbatch run` goes on),
**complete** (sealed). A retry or an extension that is not complete makes a sealed job running or
stopped again: its rows count as before, and missing are the shards still to be committed.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from jobs.durations import duration
from jobs.progress import describe
from jobs.reading import OpenJob, read_committed
from jobs.shard_ranges import format_ranges
from manifests.journal import latest_presence, read_failures
from manifests.open_revision import OpenRevision, open_revision, plan_at
from manifests.records import Presence

STALE_S = 60.0
State = Literal["planned", "running", "stopped", "complete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """The answer of `spotbatch status`."""

    job: str
    uri: str
    state: State
    revision: int
    """What is worked on, or what counts: 0 is the first run, later ones retry or append rows."""
    appends: bool
    """Whether this revision appended rows."""
    shards: int
    shards_total: int
    missing: str
    """Shards that the revision has still to commit, as in `1-2,5`."""
    rows: int
    rows_total: int
    samples: int
    ok: int
    errors: int
    failures: int
    """Failed attempts at shards, those that were made good later included."""
    running: Presence | None
    """What the running driver says, uncommitted samples included."""
    updated: str | None
    """When a driver last spoke (ISO 8601, UTC)."""

    @property
    def tokens_per_second(self) -> float | None:
        """As the running driver says."""
        return self.running.rate_tokens_s if self.running else None

    @property
    def workers(self) -> int | None:
        """Of the running driver."""
        return self.running.workers if self.running else None

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        running = self.running
        return asdict(self) | {
            "running": None if running is None else running.model_dump(mode="json"),
            "tokens_per_second": self.tokens_per_second,
            "workers": self.workers,
            "eta_s": None if running is None else running.eta_s,
        }

    def lines(self) -> list[tuple[str, str]]:
        """As names and values to print."""
        lines = [
            ("job", self.job),
            ("state", self.state),
            ("shards", f"{self.shards} of {self.shards_total}"),
            ("rows", f"{self.rows} of {self.rows_total}"),
            ("samples", f"{self.samples} ({self.ok} ok, {self.errors} errors)"),
            ("failed attempts", str(self.failures)),
        ]
        if self.revision:
            kind = "an extension" if self.appends else "a retry"
            lines.insert(2, ("revision", f"{self.revision} ({kind})"))
        if self.missing:
            lines.append(("missing shards", self.missing))
        if self.updated is not None:
            lines.append(("last heard", self.updated))
        if self.running is not None:
            lines.append(("tokens/s", f"{self.tokens_per_second:.1f}, {self.workers} workers"))
        if self.running is not None and self.running.eta_s is not None:
            lines.append(("time left", f"about {duration(self.running.eta_s)}"))
        return lines

    def line(self) -> str:
        """In one line, for logs."""
        if self.running is not None:
            return f"{self.state}: {describe(self.running)}"
        return (
            f"{self.state}: {self.shards} of {self.shards_total} shards, "
            f"{self.rows} of {self.rows_total} rows, {self.errors} errors"
        )


def read_status(job: OpenJob, *, now: datetime) -> JobStatus:
    """Where `job` stands; `DamagedError` names a record that cannot be used."""
    committed = read_committed(job)
    records = committed.records.values()
    presence = latest_presence(job.store)
    opened = open_revision(job.store, job.plan)
    revision = opened.number if opened else committed.seal.revision if committed.seal else 0
    plan = plan_at(job.store, job.plan, revision)  # whoever watches a job sees it grow
    state = _state(presence, complete=opened is None, begun=bool(committed.records), now=now)
    return JobStatus(
        job=job.plan.job_id,
        uri=job.store.uri,
        state=state,
        shards=len(records),
        shards_total=len(plan.shards),
        revision=revision,
        appends=revision in plan.extended_in,
        missing=format_ranges(_missing(opened) if opened else ()),
        rows=sum(record.rows for record in records),
        rows_total=plan.rows,
        samples=sum(record.samples for record in records),
        ok=sum(record.ok for record in records),
        errors=sum(record.errors for record in records),
        failures=len(read_failures(job.store)),
        running=presence if state == "running" else None,
        updated=presence.updated if presence else None,
    )


def _missing(opened: OpenRevision) -> set[int]:
    return {shard.shard for shard in opened.shards} - opened.list_committed()


def _state(presence: Presence | None, *, complete: bool, begun: bool, now: datetime) -> State:
    if complete:
        return "complete"
    if presence is None:
        return "stopped" if begun else "planned"
    silent_s = (now - datetime.fromisoformat(presence.updated)).total_seconds()
    return "running" if not presence.finished and silent_s < STALE_S else "stopped"
