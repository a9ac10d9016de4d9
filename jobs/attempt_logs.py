"""What failed attempts left behind: their failure records and the ends of their logs."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from jobs.reading import OpenJob
from manifests.errors import MissingError
from manifests.journal import read_failures
from manifests.keys import log_key
from manifests.records import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """One attempt that ended without a commit."""

    failure: Failure
    log: str | None
    """The end of the worker's log, if the attempt could leave one."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return self.failure.model_dump(mode="json", exclude={"version"}) | {"log": self.log}

    def lines(self) -> list[str]:
        """What happened, then the log."""
        failed = self.failure
        head = (
            f"{failed.time} shard {failed.shard} attempt {failed.attempt} on {failed.worker}: "
            f"{failed.error_class} ({failed.kind}): {failed.message}"
        )
        return [head, *(f"  {line}" for line in (self.log or "").splitlines())]


def failed_attempts(
    job: OpenJob, *, shards: Collection[int] | None = None
) -> Iterator[FailedAttempt]:
    """The failed attempts of a job, or of some of its shards, in the order of time."""
    failures = sorted(read_failures(job.store), key=lambda failure: failure.time)
    for failure in failures:
        if shards is None or failure.shard in shards:
            yield FailedAttempt(failure=failure, log=_log(job, failure))


def _log(job: OpenJob, failure: Failure) -> str | None:
    try:
        return job.store.get(log_key(failure.shard, failure.attempt)).decode(errors="replace")
    except MissingError:
        return None
