"""Stored documents: canonical, with a checksum, and damage is never silent."""

import json

import pytest

from manifests.documents import Document, checked_fields, decode, encode, read_document
from manifests.errors import DamagedError, MissingError
from manifests.hashing import canonical_json, sha256_hex
from manifests.protocol import read_seal
from manifests.records import CommitRecord, Presence
from tests.manifests.builders import StoredJob


class Note(Document):
    """A small document."""

    version: int = 1
    text: str
    share: float = 0.5


def test_a_document_comes_back_as_it_was() -> None:
    note = Note(text="\u00e9", share=0.1)
    assert decode(Note, encode(note), key="k") == note


def test_stored_bytes_are_canonical_json_with_a_checksum_of_the_rest() -> None:
    data = encode(Note(text="a"))
    fields = json.loads(data)
    assert data == canonical_json(fields)
    assert fields.pop("checksum") == sha256_hex(canonical_json(fields))


def test_every_single_flipped_bit_is_found() -> None:
    data = encode(Note(text="abc", share=0.25))
    for index in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[index // 8] ^= 1 << index % 8
        with pytest.raises(DamagedError, match=r"^some-key: "):
            decode(Note, bytes(flipped), key="some-key")


@pytest.mark.parametrize("cut", [0, 1, 20, -1])
def test_a_document_that_was_cut_off_is_damaged(cut: int) -> None:
    with pytest.raises(DamagedError, match="k: "):
        decode(Note, encode(Note(text="abc"))[:cut], key="k")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"[1]",
        b"1",
        b"null",
        b'"text"',
        b"{}",
        b'{"checksum":"0","share":NaN}',
        b"[" * 100_000,
    ],
    ids=range(10),
)
def test_foreign_bytes_are_damage(data: bytes) -> None:
    with pytest.raises(DamagedError, match="k: not a JSON document of a job"):
        checked_fields(data, key="k")


def test_a_document_of_another_kind_names_the_field() -> None:
    with pytest.raises(DamagedError, match=r"k: epoch: Field required"):
        decode(Presence, encode(Note(text="a")), key="k")


def test_a_document_of_another_version_names_the_version(sealed_job: StoredJob) -> None:
    data = sealed_job.store.get("seals/0000.json")
    fields = json.loads(data)
    del fields["checksum"]
    fields["version"] = 2
    newer = canonical_json({**fields, "checksum": sha256_hex(canonical_json(fields))})
    sealed_job.path("seals/0000.json").write_bytes(newer)
    with pytest.raises(DamagedError, match=r"seals/0000.json: version: Input should be 1"):
        read_seal(sealed_job.store)


def test_a_broken_rule_over_several_fields_is_reported_for_the_document(job: StoredJob) -> None:
    path = job.attempt_file(0, attempt="0" * 16)
    record = job.record(0, attempt="0" * 16, path=path).model_copy(update={"ok": 0})
    with pytest.raises(DamagedError, match="k: document: Value error, samples is not the sum"):
        decode(CommitRecord, encode(record), key="k")


def test_reading_an_absent_document_is_missing_not_damage(job: StoredJob) -> None:
    with pytest.raises(MissingError, match=r"seals/0000.json is not in"):
        read_document(job.store, Note, "seals/0000.json")
