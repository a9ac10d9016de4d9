"""How often a request is made and what is said at the end; no server is needed."""

import asyncio
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from manifests.errors import (
    ManifestError,
    MissingError,
    RefusedError,
    StoreError,
    UnknownOutcomeError,
)
from manifests.job_running import Storage
from manifests.store.s3 import S3Client
from tests.manifests.store.s3.test_outcomes import answered

LOST = ReadTimeoutError(endpoint_url="http://server")
BUSY = answered("OperationAborted", 409)
REFUSED = answered("PreconditionFailed", 412)
DENIED = answered("AccessDenied", 403)
MISSING = answered("NoSuchKey", 404)


class Script:
    """A request that ends as scripted, then well."""

    def __init__(self, *ends: Exception) -> None:
        self._ends = list(ends)
        self.num_made = 0

    async def __call__(self, files: Any) -> str:
        """One request."""
        self.num_made += 1
        if self._ends:
            raise self._ends.pop(0)
        return "answer"


@pytest.fixture
def pauses() -> list[float]:
    """How long the client would have paused."""
    return []


@pytest.fixture
def client(pauses: list[float]) -> S3Client:
    """A client that never pauses and tries four times."""
    return S3Client(Storage(endpoint="http://127.0.0.1:9", attempts=4), pause=pauses.append)


def create(client: S3Client, script: Script) -> None:
    client.create(script, about="the object", timeout_s=5.0)


def ask(client: S3Client, script: Script) -> str:
    return client.ask(script, about="the object", timeout_s=5.0)


@pytest.mark.parametrize("ends", [[], [BUSY], [LOST], [BUSY, LOST, BUSY]])
def test_a_creation_that_succeeds_at_last_is_done(client: S3Client, ends: list[Exception]) -> None:
    script = Script(*ends)
    create(client, script)
    assert script.num_made == len(ends) + 1


@pytest.mark.parametrize(
    ("ends", "error", "num_made"),
    [
        ([REFUSED], RefusedError, 1),
        ([BUSY, REFUSED], RefusedError, 2),
        ([LOST, REFUSED], UnknownOutcomeError, 2),
        ([LOST, DENIED], UnknownOutcomeError, 2),
        ([LOST, BUSY, BUSY, BUSY], UnknownOutcomeError, 4),
        ([LOST] * 4, UnknownOutcomeError, 4),
        ([BUSY] * 4, StoreError, 4),
        ([DENIED], StoreError, 1),
    ],
)
def test_a_creation_is_only_called_refused_or_undone_where_that_is_certain(
    client: S3Client, ends: list[Exception], error: type[Exception], num_made: int
) -> None:
    script = Script(*ends)
    with pytest.raises(error, match=r"^the object") as caught:
        create(client, script)
    assert type(caught.value) is error
    assert script.num_made == num_made


@pytest.mark.parametrize(
    ("ends", "error", "num_made"),
    [
        ([MISSING], MissingError, 1),
        ([LOST, MISSING], MissingError, 2),
        ([DENIED], StoreError, 1),
        ([LOST] * 4, StoreError, 4),
        ([BUSY] * 4, StoreError, 4),
    ],
)
def test_a_question_is_repeated_until_it_is_answered(
    client: S3Client, ends: list[Exception], error: type[ManifestError], num_made: int
) -> None:
    script = Script(*ends)
    with pytest.raises(error, match=r"^the object"):
        ask(client, script)
    assert script.num_made == num_made
    assert ask(client, Script(LOST, BUSY)) == "answer"


def test_pauses_grow_and_never_follow_the_last_attempt(
    client: S3Client, pauses: list[float]
) -> None:
    with pytest.raises(StoreError):
        ask(client, Script(*[BUSY] * 4))
    assert len(pauses) == 3
    for number, pause in enumerate(pauses, start=1):
        assert 0.1 * 2**number <= pause <= 0.2 * 2**number


def test_an_advisory_question_is_asked_once(client: S3Client) -> None:
    script = Script(LOST)
    with pytest.raises(StoreError):
        client.ask(script, about="presence", timeout_s=5.0, attempts=1)
    assert script.num_made == 1


@pytest.mark.parametrize("error", [FileNotFoundError("a local file"), OSError(28, "disk full")])
def test_trouble_on_this_side_is_passed_on_as_it_is(client: S3Client, error: OSError) -> None:
    for call in (create, ask):
        with pytest.raises(OSError, match=str(error.args[-1])) as caught:
            call(client, Script(error))
        assert caught.value is error


def test_a_request_that_hangs_is_ended_at_its_deadline(client: S3Client) -> None:
    async def hang(files: Any) -> None:
        await asyncio.Event().wait()

    with pytest.raises(StoreError, match="no answer came"):
        client.ask(hang, about="the object", timeout_s=0.01)


def test_the_file_system_below_repeats_nothing_caches_nothing_and_is_nobodys_else(
    client: S3Client,
) -> None:
    async def look(files: Any) -> Any:
        return files

    files = client.ask(look, about="", timeout_s=5.0)
    other = S3Client(client.storage).ask(look, about="", timeout_s=5.0)
    assert files is not other
    assert files.retries == 1
    assert files.config_kwargs["retries"] == {"mode": "standard", "total_max_attempts": 1}
    assert not files.dircache.use_listings_cache
    assert (files.key, files.secret, files.token) == (None, None, None)
