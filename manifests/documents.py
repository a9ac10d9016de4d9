"""How JSON documents are stored: canonical, versioned and with a checksum of themselves.

A stored document is the canonical JSON of its fields and of `checksum`, the SHA-256 of the
canonical JSON without it. Any changed byte is therefore found when the document is read, and is
reported as damage with the key; damage is never taken for absence.
"""

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from manifests.errors import DamagedError
from manifests.hashing import canonical_json, sha256_hex
from manifests.store.base import Store

_CHECKSUM = "checksum"


class Document(BaseModel):
    """Base of everything stored as JSON; unknown fields and non-finite floats are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


D = TypeVar("D", bound=Document)


def encode(document: Document) -> bytes:
    """The bytes under which a document is stored; equal documents have equal bytes."""
    fields = document.model_dump(mode="json")
    return canonical_json({**fields, _CHECKSUM: sha256_hex(canonical_json(fields))})


def decode(model: type[D], data: bytes, *, key: str) -> D:
    """The document in some stored bytes, or `DamagedError` that names the key."""
    fields = checked_fields(data, key=key)
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "document"
        raise DamagedError(f"{key}: {place}: {first['msg']}") from error


def checked_fields(data: bytes, *, key: str) -> dict[str, Any]:
    """The fields of any stored document whose bytes are as they were written."""
    try:
        fields = json.loads(data)
        checksum = fields.pop(_CHECKSUM)
        expected = sha256_hex(canonical_json(fields))
        stored = canonical_json({**fields, _CHECKSUM: checksum})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{key}: not a JSON document of a job") from error
    if checksum != expected or stored != data:
        raise DamagedError(f"{key}: its checksum does not fit; it was changed after it was written")
    assert isinstance(fields, dict), "lists have no field to take the checksum from"
    return fields


def read_document(store: Store, model: type[D], key: str) -> D:
    """Read one document; `MissingError` or `DamagedError` name the key."""
    return decode(model, store.get(key), key=key)
