"""Submitting a planned job to a Ray cluster, so that submitting twice starts it once.

The driver of attempt k of a job has the submission id `spotbatch-JOB-aK`. Whoever submits looks at
what the cluster knows first: a driver that has not ended is attached to, a job that is complete is
left alone, and only else the next attempt is asked for. Ray refuses an id that it knows, so two
submitters at the same moment start one driver, too.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from pydantic import BaseModel

from jobs.errors import JobError
from manifests.job import JobSpec

ENDED = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# What a submission decides itself: the driver runs inside the cluster it is submitted to.
_DECIDED = frozenset({"cluster.address"})


class JobServer(Protocol):
    """The part of Ray's job submission client that is used, errors worded (`submitting_client`)."""

    @property
    def address(self) -> str:
        """Of Ray's dashboard."""

    def statuses(self) -> Mapping[str, str]:
        """Status by submission id, of every submission that the cluster knows."""

    def submit(self, submission: str, *, entrypoint: str, metadata: Mapping[str, str]) -> bool:
        """Start a driver; False if the id is taken."""

    def log(self, submission: str) -> str:
        """What the driver has printed so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """The driver that runs a job now."""

    id: str
    entrypoint: str
    is_new: bool
    """False if it was running already."""


def submission_id(job_id: str, attempt: int) -> str:
    """The name of a job's k-th driver on a cluster; attempts count from 1."""
    return f"spotbatch-{job_id}-a{attempt}"


def attempts_of(job_id: str, statuses: Mapping[str, str]) -> dict[int, str]:
    """Status by attempt, of one job, ascending."""
    pattern = re.compile(re.escape(f"spotbatch-{job_id}-a") + r"([1-9]\d*)")
    found = ((pattern.fullmatch(name), status) for name, status in statuses.items())
    return dict(sorted((int(match[1]), status) for match, status in found if match))


def submit(server: JobServer, *, job_id: str, entrypoint: str) -> Submission:
    """Start a job's driver unless one is running; raises `JobError` if Ray takes no attempt."""
    for _ in range(3):  # more than one turn only if others submit meanwhile
        wanted = next_submission(server.statuses(), job_id=job_id, entrypoint=entrypoint)
        if not wanted.is_new:
            return wanted
        metadata = {"spotbatch_job": job_id}
        if server.submit(wanted.id, entrypoint=entrypoint, metadata=metadata):
            return wanted
    raise JobError(
        f"{server.address} takes no driver of job {job_id}: others come first; try again"
    )


def next_submission(statuses: Mapping[str, str], *, job_id: str, entrypoint: str) -> Submission:
    """The driver that runs now, or the one to be started."""
    attempts = attempts_of(job_id, statuses)
    last = max(attempts, default=0)
    runs = last > 0 and attempts[last] not in ENDED
    name = submission_id(job_id, last if runs else last + 1)
    return Submission(id=name, entrypoint=entrypoint, is_new=not runs)


def driver_log(server: JobServer, job_id: str) -> str:
    """The log of the driver that was submitted last; raises `JobError` if none is known."""
    attempts = attempts_of(job_id, server.statuses())
    if not attempts:
        raise JobError(
            f"{server.address} knows no driver of job {job_id}; it was not submitted there, or the "
            "cluster is another one by now"
        )
    return server.log(submission_id(job_id, max(attempts)))


def entrypoint_of(uri: str, *, settings: Sequence[str]) -> str:
    """The shell command that runs a planned job inside the cluster."""
    options = [
        word for setting in ("cluster.address=auto", *settings) for word in ("--set", setting)
    ]
    return shlex.join(["spotbatch", "run", uri, *options])


def by_hand(address: str, submission: Submission) -> str:
    """The equivalent command of Ray's own command line."""
    head = ["ray", "job", "submit", "--address", address, "--submission-id", submission.id]
    return f"{shlex.join([*head, '--no-wait', '--'])} {submission.entrypoint}"


def changed_settings(planned: JobSpec, job: JobSpec) -> list[str]:
    """What `--set` has to say so that a run of the plan is a run of `job`, as `a.b=json`."""

    old, new = dict(_leaves(planned)), dict(_leaves(job))
    names = sorted(name for name in new if name not in _DECIDED and new[name] != old.get(name))
    return [f"{name}={json.dumps(new[name])}" for name in names]


def _leaves(group: BaseModel, prefix: str = "") -> list[tuple[str, Any]]:
    plain = group.model_dump(mode="json")
    found: list[tuple[str, Any]] = []
    for name in type(group).model_fields:
        value = getattr(group, name)
        if isinstance(value, BaseModel):
            found += _leaves(value, f"{prefix}{name}.")
        else:
            found.append((f"{prefix}{name}", plain[name]))
    return found


def is_exposed(address: str, *, environment: Mapping[str, str]) -> bool:
    """Whether commands go over a network to a job server that may run anybody's."""
    host = urlsplit(address).hostname or ""
    return host not in _LOOPBACK and environment.get("RAY_AUTH_MODE", "").lower() != "token"
