"""What errors of requests mean, by type and code."""

from typing import Any

import aiohttp
import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ReadTimeoutError,
    SSLError,
)
from fsspec.exceptions import FSTimeoutError

from manifests.store.s3.outcomes import Verdict, explain, judge

URL = "http://server"


def answered(code: str, status: int) -> ClientError:
    """An error that the server sent, in words that say nothing."""
    response: Any = {
        "Error": {"Code": code, "Message": "words"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, "PutObject")


def wrapped(error: ClientError) -> OSError:
    """As s3fs passes it on."""
    outer = FileNotFoundError("words")
    outer.__cause__ = error
    return outer


def unreachable(reason: Exception) -> EndpointConnectionError:
    return EndpointConnectionError(endpoint_url=URL, error=reason)


def not_connected() -> aiohttp.ClientConnectorError:
    key: Any = type("Key", (), {"ssl": True, "host": "server", "port": 1, "is_ssl": False})()
    return aiohttp.ClientConnectorError(key, OSError(111, "refused"))


@pytest.mark.parametrize(
    ("code", "status", "verdict"),
    [
        ("PreconditionFailed", 412, "refused"),
        ("412", 412, "refused"),
        ("NoSuchKey", 404, "missing"),
        ("404", 404, "missing"),
        ("NoSuchBucket", 404, "final"),
        ("NoSuchUpload", 404, "final"),
        ("ConditionalRequestConflict", 409, "again"),
        ("OperationAborted", 409, "again"),
        ("ExpiredToken", 400, "again"),
        ("TooManyRequests", 429, "again"),
        ("SlowDown", 503, "ambiguous"),
        ("InternalError", 500, "ambiguous"),
        ("RequestTimeout", 400, "ambiguous"),
        ("NotImplemented", 501, "final"),
        ("AccessDenied", 403, "final"),
        ("InvalidArgument", 400, "final"),
    ],
)
def test_an_answer_is_judged_by_code_and_status(code: str, status: int, verdict: Verdict) -> None:
    assert judge(answered(code, status)) == verdict
    assert judge(wrapped(answered(code, status))) == verdict


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (ConnectTimeoutError(endpoint_url=URL), "again"),
        (unreachable(not_connected()), "again"),
        (unreachable(aiohttp.ClientOSError(104, "reset")), "ambiguous"),
        (ReadTimeoutError(endpoint_url=URL), "ambiguous"),
        (ConnectionClosedError(endpoint_url=URL), "ambiguous"),
        (aiohttp.ClientPayloadError("cut"), "ambiguous"),
        (FSTimeoutError(), "ambiguous"),
        (TimeoutError(), "ambiguous"),
        (SSLError(endpoint_url=URL, error="certificate"), "final"),
        (NoCredentialsError(), "final"),
        (FileNotFoundError("a local file"), "foreign"),
        (ValueError("ours"), "foreign"),
    ],
)
def test_no_answer_is_judged_by_whether_the_request_was_sent(
    error: Exception, verdict: Verdict
) -> None:
    assert judge(error) == verdict


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (answered("NoSuchBucket", 404), "create the bucket"),
        (answered("AccessDenied", 403), "credentials that may list, read and create"),
        (answered("PermanentRedirect", 301), "set storage.region"),
        (answered("InvalidArgument", 400), "S3 answered InvalidArgument (HTTP 400)"),
        (NoCredentialsError(), "there are no credentials"),
        (NoRegionError(), "set storage.region"),
        (ReadTimeoutError(endpoint_url=URL), "check storage.endpoint and the network"),
    ],
)
def test_an_explanation_has_the_remedy_and_nobody_elses_words(error: Exception, words: str) -> None:
    assert words in explain(error)
    assert "words" not in explain(error)
