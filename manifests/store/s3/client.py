"""Requests to S3: one attempt each below us, repeated here under a budget, judged by `outcomes`.

s3fs and botocore repeat requests by themselves and so lose what became of the first one; here they
are told not to. Pauses grow and are drawn at random, so that many workers do not return at once.
The file system has no cache of listings, is not shared with anybody, and is made anew in a process
that was forked. Credentials are found by the provider chain of the process and kept nowhere.
"""

import asyncio
import os
import random
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from manifests.errors import MissingError, RefusedError, StoreError, UnknownOutcomeError
from manifests.job_running import Storage
from manifests.store.s3.outcomes import explain, judge

T = TypeVar("T")
Request = Callable[[Any], Awaitable[T]]
"""Makes one request with an `s3fs.S3FileSystem`."""

_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0
# Requests of a file system at one time; each may hold a part in memory.
_MAX_CONCURRENCY = 4


class S3Client:
    """A way to one S3 endpoint, under a job's storage settings; threads may share it."""

    def __init__(self, storage: Storage, *, pause: Callable[[float], None] = time.sleep) -> None:
        self.storage = storage
        self._pause = pause
        self._lock = threading.Lock()
        self._files: Any = None
        self._owner = 0

    def ask(
        self, request: Request[T], *, about: str, timeout_s: float, attempts: int | None = None
    ) -> T:
        """A request that may be repeated at will: its answer, `MissingError` or `StoreError`."""
        limit, num_tries = attempts or self.storage.attempts, 0
        while True:
            num_tries += 1
            try:
                return self._once(request, timeout_s=timeout_s)
            except Exception as error:
                verdict = judge(error)
                if verdict == "foreign":
                    raise
                if verdict == "missing":
                    raise MissingError(f"{about} is not there") from error
                if verdict in ("final", "refused") or num_tries >= limit:
                    raise StoreError(f"{about}: {explain(error)}") from error
                self._wait(num_tries)

    def create(self, request: Request[object], *, about: str, timeout_s: float) -> None:
        """A request that creates an object if it is absent.

        Raises `RefusedError`, `UnknownOutcomeError` where an earlier attempt may be what is there
        now, and `StoreError` where nothing was created.
        """
        is_ambiguous, num_tries = False, 0
        while True:
            num_tries += 1
            try:
                self._once(request, timeout_s=timeout_s)
                return
            except Exception as error:
                verdict = judge(error)
                if verdict == "foreign":
                    raise
                is_ambiguous |= verdict == "ambiguous"
                is_last = num_tries >= self.storage.attempts
                if verdict in ("refused", "final", "missing") or is_last:
                    raise _creation_error(
                        error, about=about, refused=verdict == "refused", ambiguous=is_ambiguous
                    ) from error
                self._wait(num_tries)

    def _wait(self, num_tries: int) -> None:
        longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0**num_tries)
        self._pause(random.uniform(longest / 2, longest))  # noqa: S311 (no secret)

    def _once(self, request: Request[T], *, timeout_s: float) -> T:
        from fsspec.asyn import sync

        files = self._own_files()

        async def bounded() -> T:
            return await asyncio.wait_for(request(files), timeout_s)

        answer: T = sync(files.loop, bounded)
        return answer

    def _own_files(self) -> Any:
        with self._lock:
            if self._owner != os.getpid():
                self._files, self._owner = _open_files(self.storage), os.getpid()
            return self._files


def _creation_error(
    error: Exception, *, about: str, refused: bool, ambiguous: bool
) -> RefusedError | UnknownOutcomeError | StoreError:
    if ambiguous:
        return UnknownOutcomeError(f"{about} may or may not have been created ({explain(error)})")
    if refused:
        return RefusedError(f"{about} exists already")
    return StoreError(f"{about}: {explain(error)}")


def _open_files(storage: Storage) -> Any:
    from s3fs import S3FileSystem

    files = S3FileSystem(
        profile=storage.profile,
        endpoint_url=storage.endpoint,
        client_kwargs={"region_name": storage.region} if storage.region else {},
        config_kwargs={
            "connect_timeout": storage.connect_timeout_s,
            "read_timeout": storage.read_timeout_s,
            "retries": {"mode": "standard", "total_max_attempts": 1},
            "s3": {"addressing_style": storage.addressing},
            "request_checksum_calculation": storage.checksums,
            "response_checksum_validation": storage.checksums,
        },
        max_concurrency=_MAX_CONCURRENCY,
        use_listings_cache=False,
        skip_instance_cache=True,
    )
    files.retries = 1
    return files
