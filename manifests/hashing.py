"""Hashes that mean the same in every process, on every machine and in every release.

Python's own `hash` is salted and is never used. The definitions here are frozen by known answers.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from manifests.errors import ManifestError

_CHUNK_BYTES = 1 << 20


def hash64(*fields: str | int | bytes) -> int:
    """First 8 bytes, little-endian, of BLAKE2b over the length-prefixed fields.

    A length is 8 bytes little-endian; text is UTF-8; an integer is 8 bytes little-endian, unsigned.
    """
    digest = hashlib.blake2b()
    for field in fields:
        data = _field_bytes(field)
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return int.from_bytes(digest.digest()[:8], "little")


def _field_bytes(field: str | int | bytes) -> bytes:
    if isinstance(field, bytes):
        return field
    if isinstance(field, str):
        return field.encode()
    return field.to_bytes(8, "little")


def canonical_json(value: BaseModel | dict[str, Any] | list[Any]) -> bytes:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8, a newline at the end."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    try:
        text = json.dumps(
            plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode() + b"\n"
    except ValueError as error:  # a non-finite float or a lone surrogate
        raise ManifestError(f"cannot be written as JSON: {error}") from error


def sha256_hex(data: bytes) -> str:
    """SHA-256 of some bytes, as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, read in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def row_ids_digest(pairs: Iterable[tuple[str, int]]) -> str:
    """SHA-256 over row ids and sample indices in output order, each ended by a newline."""
    digest = hashlib.sha256()
    for row_id, sample in pairs:
        digest.update(f"{row_id}\n{sample}\n".encode())
    return digest.hexdigest()
