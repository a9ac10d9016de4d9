"""An upload in parts: what is sent, and what is left behind when a step fails."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import manifests.store.s3.upload
from manifests.errors import ManifestError, RefusedError, StoreError, UnknownOutcomeError
from manifests.store.s3.upload import PartsUpload


class Server:
    """Stands for client and server: keeps what it is sent, and fails where it is told to."""

    def __init__(self, **failures: ManifestError) -> None:
        self.failures = failures
        self.methods: list[str] = []
        self.parts: dict[int, bytes] = {}
        self.completed: dict[str, Any] = {}

    async def _call_s3(self, method: str, **arguments: Any) -> dict[str, Any]:
        self.methods.append(method)
        if method in self.failures:
            raise self.failures[method]
        if method == "upload_part":
            self.parts[arguments["PartNumber"]] = arguments["Body"]
        if method == "complete_multipart_upload":
            self.completed = arguments
        return {"UploadId": "u", "ETag": f"etag-{arguments.get('PartNumber')}"}

    def ask(self, request: Callable[[Any], Awaitable[Any]], **how: Any) -> Any:
        """The answer of one request."""

        async def asked() -> Any:
            return await request(self)

        return asyncio.run(asked())

    create = ask


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 25 bytes."""
    (tmp_path / "f").write_bytes(bytes(range(25)))
    return tmp_path / "f"


def upload(path: Path, server: Server, *, part_bytes: int = 10) -> None:
    client: Any = server
    PartsUpload(
        client=client,
        path="bucket/job/data",
        source=path,
        part_bytes=part_bytes,
        about="data",
        timeout_s=1.0,
    ).run()


def test_all_parts_are_sent_and_joined_in_order_if_the_name_is_free(path: Path) -> None:
    server = Server()
    upload(path, server)
    assert b"".join(server.parts[number] for number in (1, 2, 3)) == path.read_bytes()
    assert {len(part) for part in server.parts.values()} == {10, 5}
    assert server.completed == {
        "Bucket": "bucket",
        "Key": "job/data",
        "UploadId": "u",
        "IfNoneMatch": "*",
        "MultipartUpload": {
            "Parts": [{"PartNumber": n, "ETag": f"etag-{n}"} for n in (1, 2, 3)],
        },
    }


def test_parts_grow_where_there_would_be_too_many(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests.store.s3.upload, "_MAX_PARTS", 4)
    server = Server()
    upload(path, server, part_bytes=1)
    assert sorted(server.parts) == [1, 2, 3, 4]
    assert b"".join(server.parts[number] for number in (1, 2, 3, 4)) == path.read_bytes()


@pytest.mark.parametrize(
    ("failures", "error"),
    [
        ({"upload_part": StoreError("denied")}, StoreError),
        ({"complete_multipart_upload": RefusedError("there")}, RefusedError),
        (
            {
                "upload_part": StoreError("denied"),
                "abort_multipart_upload": StoreError("no such upload"),
            },
            StoreError,
        ),
    ],
)
def test_an_upload_that_surely_failed_is_given_up_and_the_reason_is_told(
    path: Path, failures: dict[str, ManifestError], error: type[ManifestError]
) -> None:
    server = Server(**failures)
    with pytest.raises(error, match=r"denied|there"):
        upload(path, server)
    assert server.methods[-1] == "abort_multipart_upload"


def test_an_upload_that_may_be_complete_is_left_alone(path: Path) -> None:
    server = Server(complete_multipart_upload=UnknownOutcomeError("no answer"))
    with pytest.raises(UnknownOutcomeError):
        upload(path, server)
    assert "abort_multipart_upload" not in server.methods
