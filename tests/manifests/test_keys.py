"""Keys: their exact spelling is a public format, and none leads out of the job."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests import keys
from manifests.errors import ManifestError
from tests.manifests.hostile_keys import HOSTILE_KEYS

ATTEMPT = "00ff00ff00ff00ff"


def test_keys_are_spelt_as_documented() -> None:
    assert [
        keys.plan_key(),
        keys.numerics_key(),
        keys.staged_key(2, 12, sha256=ATTEMPT * 4),
        keys.data_key(3, ATTEMPT),
        keys.commit_key(3),
        keys.commit_key(3, 2),
        keys.commit_prefix(),
        keys.seal_key(),
        keys.seal_key(1),
        keys.failure_key(3, ATTEMPT),
        keys.presence_key("e1"),
        keys.revision_key(1),
        keys.log_key(3, ATTEMPT),
        keys.control_key("e1", "drain"),
        keys.announced_prefix(3),
        keys.announcement_key(3, ATTEMPT, 12),
    ] == [
        "plan.json",
        "numerics.json",
        "input/part-r0002-00000012-00ff00ff00ff00ff.parquet",
        "data/00000003-00ff00ff00ff00ff.parquet",
        "commits/r0000/00000003.json",
        "commits/r0002/00000003.json",
        "commits/r0000/",
        "seals/0000.json",
        "seals/0001.json",
        "failures/00000003-00ff00ff00ff00ff.json",
        "presence/e1.json",
        "revisions/0001.json",
        "logs/00000003-00ff00ff00ff00ff.log",
        "control/e1/drain.json",
        "announced/00000003-",
        "announced/00000003-00ff00ff00ff00ff-00000012.json",
    ]


@pytest.mark.parametrize("key", HOSTILE_KEYS)
def test_a_key_that_could_lead_elsewhere_is_refused(key: str) -> None:
    with pytest.raises(ManifestError, match="is not a key of this job"):
        keys.check_key(key)


@given(st.integers(0, 10**8 - 1), st.integers(0, 9999))
def test_every_key_that_is_made_passes_the_check(shard: int, revision: int) -> None:
    made = [
        keys.staged_key(revision, shard, sha256=ATTEMPT * 4),
        keys.data_key(shard, ATTEMPT),
        keys.commit_key(shard, revision),
        keys.seal_key(revision),
        keys.failure_key(shard, ATTEMPT),
    ]
    assert [keys.check_key(key) for key in made] == made


@pytest.mark.parametrize("shard", [-1, 10**8])
def test_a_shard_number_beyond_eight_digits_is_refused(shard: int) -> None:
    with pytest.raises(ManifestError, match="8 digits"):
        keys.shard_name(shard)


@pytest.mark.parametrize("revision", [-1, 10**4])
def test_a_revision_beyond_four_digits_is_refused(revision: int) -> None:
    with pytest.raises(ManifestError, match="4 digits"):
        keys.seal_key(revision)


@pytest.mark.parametrize(
    "attempt", ["", "00ff", "00FF00FF00FF00FF", ATTEMPT + "\n", "../" * 5 + "x"]
)
def test_an_attempt_id_has_sixteen_lower_case_hex_digits(attempt: str) -> None:
    with pytest.raises(ManifestError, match="not an attempt id"):
        keys.data_key(0, attempt)


def test_attempt_ids_are_well_formed_and_differ() -> None:
    made = {keys.new_attempt_id() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch(r"[0-9a-f]{16}", attempt) for attempt in made)


def test_a_presence_epoch_cannot_lead_elsewhere() -> None:
    with pytest.raises(ManifestError, match="not a key"):
        keys.presence_key("../plan")
