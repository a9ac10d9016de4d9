"""A large file into S3, in parts: each part is repeated by itself, only the completion creates.

s3fs can do this in one call, but when the answer to the completion is lost it first aborts the
upload, and what comes out is the error of that; so the steps are made here one by one.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manifests.errors import ManifestError, UnknownOutcomeError
from manifests.store.s3.client import S3Client

_MAX_PARTS = 10_000
_CONCURRENT_PARTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsUpload:
    """One upload of one file to one name."""

    client: S3Client
    path: str
    source: Path
    part_bytes: int
    about: str
    timeout_s: float
    """Of the request for one part."""

    def run(self) -> None:
        """Create the object; outcomes as `S3Client.create`."""
        upload_id = str(self._ask("create_multipart_upload")["UploadId"])
        try:
            parts = self._upload(upload_id)
            self._complete(upload_id, parts)
        except UnknownOutcomeError:  # it may be complete, and then there is nothing to abort
            raise
        except BaseException:
            with suppress(ManifestError):
                self._ask("abort_multipart_upload", UploadId=upload_id)
            raise

    def _upload(self, upload_id: str) -> list[dict[str, Any]]:
        size = self.source.stat().st_size
        part_bytes = max(self.part_bytes, -(-size // _MAX_PARTS))
        with self.source.open("rb") as file, ThreadPoolExecutor(_CONCURRENT_PARTS) as threads:

            def upload(number: int) -> dict[str, Any]:
                data = os.pread(file.fileno(), part_bytes, (number - 1) * part_bytes)
                answer = self._ask("upload_part", UploadId=upload_id, PartNumber=number, Body=data)
                return {"PartNumber": number, "ETag": answer["ETag"]}

            return list(threads.map(upload, range(1, -(-size // part_bytes) + 1)))

    def _complete(self, upload_id: str, parts: list[dict[str, Any]]) -> None:
        self.client.create(
            lambda files: files._call_s3(
                "complete_multipart_upload",
                **self._name(),
                UploadId=upload_id,
                MultipartUpload={"Parts": parts},
                IfNoneMatch="*",
            ),
            about=self.about,
            timeout_s=self.timeout_s,
        )

    def _ask(self, method: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.ask(
            lambda files: files._call_s3(method, **self._name(), **arguments),
            about=self.about,
            timeout_s=self.timeout_s,
        )
        return answer

    def _name(self) -> dict[str, str]:
        bucket, _, key = self.path.partition("/")
        return {"Bucket": bucket, "Key": key}
