"""Proof that a process can use the job's storage, before it does anything dear.

The driver of a run creates one object with a random value. Every worker reads it, which shows that
it sees the same storage, and creates one object beside it with its own credentials. The objects of
a run are removed at its end; left ones are in nobody's way.
"""

import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass

from manifests.errors import AccessError, ManifestError, MissingError
from manifests.keys import access_nonce_key, access_prefix, access_proof_key, new_attempt_id
from manifests.protocol import create
from manifests.store.base import Store

_REMEDY = (
    "give every node the same file system under the same path, or credentials that may list, read "
    "and create objects there"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nonce:
    """What a driver wrote for its workers to read; not a secret."""

    run: str
    value: str


def open_access(store: Store) -> Nonce:
    """Prove that the driver itself can use the store, and leave a nonce for its workers."""
    store.probe()
    nonce = Nonce(run=new_attempt_id(), value=secrets.token_hex(16))
    create(lambda: store.put_if_absent(access_nonce_key(nonce.run), nonce.value.encode()))
    return nonce


def prove_access(store: Store, nonce: Nonce, *, worker: str) -> None:
    """Read the driver's nonce and create one object; `AccessError` names host, place and remedy."""
    where = f"worker {worker} on {socket.gethostname()}"
    try:
        found = store.get(access_nonce_key(nonce.run))
    except MissingError as error:
        raise AccessError(f"{where} sees another {store.uri} than the driver; {_REMEDY}") from error
    except OSError as error:
        raise AccessError(f"{where} cannot read {store.uri} ({error}); {_REMEDY}") from error
    if found != nonce.value.encode():
        raise AccessError(f"{where} sees another {store.uri} than the driver; {_REMEDY}")
    proof = access_proof_key(nonce.run, new_attempt_id())
    try:
        create(lambda: store.put_if_absent(proof, worker.encode()))
    except (OSError, ManifestError) as error:
        raise AccessError(f"{where} cannot create in {store.uri} ({error}); {_REMEDY}") from error


def close_access(store: Store, nonce: Nonce) -> None:
    """Remove what proofs left; whether that works matters to nobody."""
    with suppress(OSError, ManifestError):
        for key in store.list(access_prefix(nonce.run)):
            store.delete(key)
