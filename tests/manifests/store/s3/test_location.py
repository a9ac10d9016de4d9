"""From URIs to buckets and prefixes, and what no message may repeat."""

import pytest

from manifests.errors import ManifestError
from manifests.store.s3 import parse_location


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("s3://bucket", "bucket"),
        ("s3://bucket/", "bucket"),
        ("s3://my-bucket.eu/a/b=1/c d/", "my-bucket.eu/a/b=1/c d"),
    ],
)
def test_bucket_and_prefix_are_taken_apart_and_put_together(uri: str, path: str) -> None:
    location = parse_location(uri, field="output.uri")
    assert (location.path, location.uri) == (path, f"s3://{path}")


@pytest.mark.parametrize(
    "uri",
    [
        "s3://",
        "s3:///key",
        "s3://UPPER/a",
        "s3://a",
        "s3://bucket/../other",
        "s3://bucket/a/../../other",
        "s3://bucket/./a",
        "s3://bucket//a",
        "s3://bucket/a//b",
        "s3://bucket/a\\b",
        "s3://bucket/a%2e%2e",
        "s3://bucket/a?versionId=1",
        "s3://bucket/a#b",
        "s3://bucket/a\nb",
        "s3://bucket/a\x00b",
        "https://bucket/a",
    ],
)
def test_what_leads_elsewhere_or_reads_differently_is_refused_by_setting(uri: str) -> None:
    with pytest.raises(ManifestError, match=r"^target\.path: "):
        parse_location(uri, field="target.path")


def test_credentials_in_a_uri_are_refused_and_not_repeated() -> None:
    with pytest.raises(ManifestError, match="credentials come from") as caught:
        parse_location("s3://AKIAKEY:topsecret@bucket/job", field="output.uri")
    assert "topsecret" not in str(caught.value)
    assert "AKIAKEY" not in str(caught.value)
