"""Proof of access: who can use the storage, and what is said to those who cannot."""

import os
import socket
from pathlib import Path

import pytest

from manifests.access import Nonce, close_access, open_access, prove_access
from manifests.errors import AccessError, ManifestError, StoreError, UnknownOutcomeError
from manifests.store import LocalStore, MemoryStore
from tests.manifests.faulty_store import FaultyStore


class Denying(MemoryStore):
    """A store whose credentials do not allow some operation."""

    denied = ""

    def get(self, key: str) -> bytes:
        """As allowed."""
        if self.denied == "get":
            raise StoreError("S3 answered AccessDenied")
        return super().get(key)

    def put_if_absent(self, key: str, data: bytes) -> None:
        """As allowed."""
        if self.denied == "put":
            raise StoreError("S3 answered AccessDenied")
        super().put_if_absent(key, data)


def test_a_worker_reads_the_nonce_and_creates_one_object() -> None:
    store = MemoryStore()
    nonce = open_access(store)
    before = set(store.list(""))
    prove_access(store, nonce, worker="worker-0001")
    (created,) = set(store.list("")) - before
    assert store.get(created) == b"worker-0001"
    close_access(store, nonce)
    assert store.list("") == []


@pytest.mark.parametrize(("denied", "what"), [("get", "cannot read"), ("put", "cannot create in")])
def test_what_a_worker_may_not_do_is_told_with_host_place_and_remedy(
    denied: str, what: str
) -> None:
    store = Denying()
    nonce = open_access(store)
    store.denied = denied
    with pytest.raises(AccessError) as caught:
        prove_access(store, nonce, worker="worker-0007")
    sentence = str(caught.value)
    assert f"worker worker-0007 on {socket.gethostname()} {what} memory:job" in sentence
    assert "AccessDenied" in sentence
    assert "or credentials that may list, read and create objects" in sentence


def test_a_worker_with_another_root_is_refused_by_name(tmp_path: Path) -> None:
    nonce = open_access(LocalStore(tmp_path / "mine"))
    other = LocalStore(tmp_path / "theirs")
    with pytest.raises(AccessError, match=r"sees another .*theirs than the driver; give every"):
        prove_access(other, nonce, worker="worker-0001")
    other.probe()
    stranger = Nonce(run=nonce.run, value="0" * 32)
    other.put_if_absent(f"access/{nonce.run}/nonce", stranger.value.encode())
    with pytest.raises(AccessError, match="sees another"):
        prove_access(other, nonce, worker="worker-0001")


def test_a_folder_that_a_worker_can_only_read_is_refused(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "job")
    nonce = open_access(store)

    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", refuse)
        with pytest.raises(AccessError, match=r"cannot create in .*Permission denied"):
            prove_access(store, nonce, worker="worker-0001")


def test_a_lost_reply_is_settled_and_a_store_that_never_answers_is_no_proof() -> None:
    store = MemoryStore()
    nonce = open_access(FaultyStore(store, script=["reply lost"]))
    prove_access(FaultyStore(store, script=["reply lost", "request lost"]), nonce, worker="w")
    with pytest.raises(AccessError, match="cannot create"):
        prove_access(FaultyStore(store, script=["request lost"] * 3), nonce, worker="w")


def test_a_driver_that_cannot_use_the_store_finds_out_first(tmp_path: Path) -> None:
    (tmp_path / "job").write_bytes(b"")
    with pytest.raises(ManifestError, match="cannot hold a job"):
        open_access(LocalStore(tmp_path / "job"))


def test_clearing_up_fails_in_silence_and_only_takes_what_is_its_own() -> None:
    store = MemoryStore()
    first, second = open_access(store), open_access(store)
    close_access(store, first)
    assert store.list("") == [f"access/{second.run}/nonce"]

    class Broken(MemoryStore):
        def list(self, prefix: str) -> list[str]:
            raise UnknownOutcomeError("no answer")

    close_access(Broken(), second)
