"""What an error of a request says about its effect, told by type and code, never by its words.

- **refused**: a condition did not hold; the object is there.
- **missing**: there is no such object.
- **again**: the request had no effect, and may have one later.
- **ambiguous**: the request may have had its effect, only the answer did not arrive.
- **final**: the request had no effect and will have none; `explain` says what to mend.
- **foreign**: no trouble of S3: a local file, a full disk, our own mistake.
"""

from typing import Any, Literal

import aiohttp
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    ProxyConnectionError,
    SSLError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError
from fsspec.exceptions import FSTimeoutError

Verdict = Literal["refused", "missing", "again", "ambiguous", "final", "foreign"]

_AMBIGUOUS = (
    HTTPClientError,
    IncompleteReadError,
    ResponseParserError,
    FSTimeoutError,
    TimeoutError,
    aiohttp.ClientError,
)
_NO_CREDENTIALS = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    TokenRetrievalError,
    ProfileNotFound,
)
# The provider chain renews what has expired; clocks and reservations come right.
_PASSING_CODES = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "RequestTimeTooSkewed", "RequestExpired"}
    | {"ConditionalRequestConflict", "OperationAborted", "TooManyRequests"}
)
_DENIED_CODES = frozenset(
    {"AccessDenied", "AccountProblem", "AllAccessDisabled", "InvalidAccessKeyId"}
    | {"InvalidToken", "SignatureDoesNotMatch", "InvalidSecurity", "NotSignedUp", "403", "401"}
)
_REGION_CODES = frozenset(
    {"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "301", "307"}
    | {"IllegalLocationConstraintException"}
)


def judge(error: BaseException) -> Verdict:
    """What became of the request that ended in an error."""
    response = _response(error)
    if response is not None:
        return _judge_response(_code(response), status=_status(response))
    if isinstance(error, SSLError):
        return "final"
    if isinstance(error, ConnectTimeoutError | ProxyConnectionError):
        return "again"
    if isinstance(error, EndpointConnectionError):
        # Also what a connection that broke in mid-request becomes.
        reason = error.kwargs.get("error")
        return "again" if isinstance(reason, aiohttp.ClientConnectorError) else "ambiguous"
    if isinstance(error, _AMBIGUOUS):
        return "ambiguous"
    return "final" if isinstance(error, BotoCoreError) else "foreign"


def _judge_response(code: str, *, status: int) -> Verdict:
    if code == "PreconditionFailed" or status == 412:
        return "refused"
    if code in ("NoSuchKey", "404"):
        return "missing"
    if code in _PASSING_CODES or status in (409, 429):
        return "again"
    if code == "RequestTimeout" or (status >= 500 and status != 501):
        return "ambiguous"
    return "final"


def explain(error: BaseException) -> str:
    """A final error, or the last one of many, as reason and remedy; no server's words, no keys."""
    response = _response(error)
    if response is None:
        return _explain_exception(error)
    code = _code(response)
    told = f"S3 answered {code} (HTTP {_status(response)})"
    if code == "NoSuchBucket":
        return f"{told}: create the bucket, or correct its name"
    if code in _DENIED_CODES:
        return f"{told}: {_CREDENTIALS_REMEDY}"
    if code in _REGION_CODES:
        return f"{told}: set storage.region to the bucket's"
    return told


_CREDENTIALS_REMEDY = (
    "give this process credentials that may list, read and create objects there, by environment "
    "variables, storage.profile or the machine's role"
)


def _explain_exception(error: BaseException) -> str:
    name = type(error).__name__
    if isinstance(error, _NO_CREDENTIALS):
        return f"there are no credentials ({name}): {_CREDENTIALS_REMEDY}"
    if isinstance(error, NoRegionError):
        return "there is no region: set storage.region"
    return f"no answer came ({name}): check storage.endpoint and the network"


def _response(error: BaseException) -> dict[str, Any] | None:
    """The server's answer in an error of botocore, or in what s3fs made of it."""
    for candidate in (error, error.__cause__):
        if isinstance(candidate, ClientError):
            response: dict[str, Any] = candidate.response
            return response
    return None


def _code(response: dict[str, Any]) -> str:
    return str(response.get("Error", {}).get("Code", "no code"))


def _status(response: dict[str, Any]) -> int:
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
