"""Canonical hashing: frozen by known answers, since stored jobs depend on it."""

import hashlib
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.errors import ManifestError
from manifests.hashing import canonical_json, hash64, row_ids_digest, sha256_file, sha256_hex
from manifests.records import Seal
from tests.manifests.builders import SHA


# Computed by GNU b2sum over the length-prefixed fields; its first 8 bytes.
@pytest.mark.parametrize(
    ("fields", "first_bytes"),
    [
        ((), "786a02f742015903"),
        (("shard", 0, 0), "5d02a3a864866d99"),
        (("shard", 1, 7), "f846fc6052fe8a16"),
        (("row", 2**64 - 1, "id-\u00e9", 3), "a2e2375320517b57"),
        ((b"\x00\xff",), "067425498f6d1d2c"),
    ],
)
def test_hash64_has_known_answers(fields: tuple[str | int | bytes, ...], first_bytes: str) -> None:
    assert hash64(*fields) == int.from_bytes(bytes.fromhex(first_bytes), "little")


def test_hash64_is_blake2b_over_length_prefixed_fields() -> None:
    parts = [b"ab", (5).to_bytes(8, "little")]
    message = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    digest = hashlib.blake2b(message, digest_size=64).digest()
    assert hash64("ab", 5) == int.from_bytes(digest[:8], "little")


def test_field_boundaries_matter_to_hash64() -> None:
    assert hash64("ab", "c") != hash64("a", "bc")


@pytest.mark.parametrize("field", [-1, 2**64])
def test_hash64_takes_only_unsigned_64_bit_integers(field: int) -> None:
    with pytest.raises(OverflowError):
        hash64(field)


def test_canonical_json_sorts_keys_leaves_no_space_and_ends_with_a_newline() -> None:
    assert canonical_json({"b": [1, 2.5], "a": "\u00e9"}) == '{"a":"\u00e9","b":[1,2.5]}\n'.encode()


def test_canonical_json_writes_a_model_by_its_fields() -> None:
    seal = Seal(plan_sha256=SHA, shards=(), rows=0, samples=0, ok=0, errors=0, sealed="t")
    assert canonical_json(seal) == (
        b'{"errors":0,"ok":0,"parent":null,"plan_sha256":"' + SHA.encode() + b'","revision":0,'
        b'"rows":0,"samples":0,"sealed":"t","shards":[],"version":1}\n'
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800"])
def test_canonical_json_refuses_what_json_cannot_hold(value: object) -> None:
    with pytest.raises(ManifestError, match="cannot be written as JSON"):
        canonical_json([value])


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers()))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: dict[str, int]) -> None:
    backwards = dict(reversed(value.items()))
    assert canonical_json(value) == canonical_json(backwards)


def test_sha256_of_bytes_is_the_published_answer_for_abc() -> None:
    assert sha256_hex(b"abc").startswith("ba7816bf8f01cfea")


def test_a_file_has_the_sha256_of_its_bytes_beyond_one_chunk(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    (tmp_path / "f").write_bytes(data)
    assert sha256_file(tmp_path / "f") == sha256_hex(data)


def test_the_row_ids_digest_is_over_ids_and_samples_in_order() -> None:
    assert row_ids_digest([("a", 0), ("b", 1)]) == sha256_hex(b"a\n0\nb\n1\n")
    assert row_ids_digest([("b", 1), ("a", 0)]) != row_ids_digest([("a", 0), ("b", 1)])
