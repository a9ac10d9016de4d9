"""Ray's job submission client, with its errors in words of ours.

Tokens are Ray's own affair: with RAY_AUTH_MODE=token the client sends the one that RAY_AUTH_TOKEN,
RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token holds.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jobs.errors import JobError
from jobs.submitting import ENDED

_ADDRESS_VARIABLE = "RAY_API_SERVER_ADDRESS"
_POLL_S = 1.0
_SUBMIT_TRIES = 10
_SUBMIT_PAUSE_S = 3.0
EXIT_OF_STATUS = {"SUCCEEDED": 0, "FAILED": 1, "STOPPED": 130}


class RayJobServer:
    """The job server of one cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def address(self) -> str:
        """Of Ray's dashboard."""
        return str(self._client.get_address())

    def statuses(self) -> Mapping[str, str]:
        """Status by submission id; drivers that were not submitted have none and are left out."""
        with _worded(self.address):
            details = self._client.list_jobs()
        return {d.submission_id: str(d.status.value) for d in details if d.submission_id}

    def submit(self, submission: str, *, entrypoint: str, metadata: Mapping[str, str]) -> bool:
        """Start a driver; False if the id is taken.

        Asked again for a while, since a cluster that has just started takes no jobs yet; the id
        sees to it that one driver is started at most.
        """
        with _worded(self.address):
            for tries_left in reversed(range(_SUBMIT_TRIES)):
                try:
                    self._client.submit_job(
                        entrypoint=entrypoint, submission_id=submission, metadata=dict(metadata)
                    )
                    return True
                except RuntimeError:  # the same type for all trouble; only a look tells
                    if submission in self.statuses():
                        return False
                    if not tries_left:
                        raise
                time.sleep(_SUBMIT_PAUSE_S)
        raise AssertionError("the last try returns or raises")

    def log(self, submission: str) -> str:
        """What the driver has printed so far."""
        with _worded(self.address):
            return str(self._client.get_job_logs(submission))

    def wait(self, submission: str, *, say: Callable[[str], None]) -> int:
        """Pass on what the driver prints until it ends; its exit code."""
        with _worded(self.address):
            asyncio.run(self._tail(submission, say=say))
            while True:
                info = self._client.get_job_info(submission)
                if info.status.value in ENDED:
                    code = info.driver_exit_code
                    return EXIT_OF_STATUS[info.status.value] if code is None else int(code)
                time.sleep(_POLL_S)

    async def _tail(self, submission: str, *, say: Callable[[str], None]) -> None:
        async for lines in self._client.tail_job_logs(submission):
            say(lines)


def connect(address: str | None) -> RayJobServer:
    """The job server at Ray's dashboard; raises `JobError` if none answers there.

    Without an address the environment decides, then a cluster on this machine is looked for.
    """
    from ray.job_submission import JobSubmissionClient

    logging.getLogger("ray").setLevel(logging.ERROR)  # it tells of every connection
    place = address or os.environ.get(_ADDRESS_VARIABLE) or "this machine"
    with _worded(place), _address_in_environment(address):
        return RayJobServer(JobSubmissionClient(address))


@contextmanager
def _address_in_environment(address: str | None) -> Iterator[None]:
    """Ray lets the variable override the argument; here the argument is what was asked for."""
    before = os.environ.get(_ADDRESS_VARIABLE)
    if address is not None:
        os.environ[_ADDRESS_VARIABLE] = address
    try:
        yield
    finally:
        if address is not None:
            os.environ.pop(_ADDRESS_VARIABLE)
            if before is not None:
                os.environ[_ADDRESS_VARIABLE] = before


@contextmanager
def _worded(place: str) -> Iterator[None]:
    from ray.exceptions import AuthenticationError

    try:
        yield
    except AuthenticationError as error:
        raise JobError(
            f"Ray's job server at {place} wants a token or refuses this one; set "
            "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH) as the cluster has it"
        ) from error
    except (ConnectionError, OSError) as error:
        raise JobError(
            f"Ray's job server cannot be reached at {place}; give the dashboard's address, as in "
            "--address http://head:8265"
        ) from error
    except (RuntimeError, ValueError) as error:
        first_line = str(error).strip().partition("\n")[0]
        raise JobError(f"Ray's job server at {place} refused: {first_line}") from error
