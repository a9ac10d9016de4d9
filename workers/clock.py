"""The moment, as records and logs write it."""

from datetime import UTC, datetime


def utc_now() -> str:
    """ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
