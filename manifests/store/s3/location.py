"""From `s3://bucket/prefix` to bucket and prefix. A URI that is not plain is never quoted whole."""

import re
from dataclasses import dataclass

from manifests.errors import ManifestError
from manifests.store.base import S3_SCHEME, is_s3

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
# s3fs reads `?versionId=` out of names, and `%` and `#` mean other things to other tools.
_PART = re.compile(r"[^\x00-\x1f\x7f\\?#%]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in a bucket; `prefix` has no slash at either end and may be empty."""

    bucket: str
    prefix: str

    @property
    def path(self) -> str:
        """As s3fs names it."""
        return f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket

    @property
    def uri(self) -> str:
        """As people name it."""
        return f"{S3_SCHEME}{self.path}"


def parse_location(uri: str, *, field: str) -> Location:
    """Take a URI apart; `ManifestError` names the setting that it came from."""
    bucket, _, prefix = uri.removeprefix(S3_SCHEME).partition("/")
    if not is_s3(uri) or not _BUCKET.fullmatch(bucket):
        raise ManifestError(
            f"{field}: write s3://bucket/prefix, with the bucket's plain name (credentials come "
            "from the environment, profile or role of each process)"
        )
    prefix = prefix.removesuffix("/")
    parts = prefix.split("/") if prefix else []
    for part in parts:
        if part in (".", "..") or not _PART.fullmatch(part):
            raise ManifestError(
                f"{field}: {part!r} in the prefix of bucket {bucket} is not a plain name; use "
                "parts without '..', '?', '#', '%' and backslash, divided by single '/'"
            )
    return Location(bucket=bucket, prefix=prefix)
