"""Records refuse what contradicts itself or leads elsewhere."""

from typing import Any

import pytest
from pydantic import ValidationError

from manifests.records import CommitRecord, SealedShard
from tests.manifests.builders import SHA, StoredJob

ATTEMPT = "00ff00ff00ff00ff"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data_key": "data/00000001-00ff00ff00ff00ff.parquet"}, "data_key is not the one of"),
        ({"data_key": "../x"}, "data_key is not the one of"),
        ({"errors": 1}, "samples is not the sum of ok and errors"),
        ({"attempt": "../../x"}, "should match pattern"),
        ({"engine_s": float("nan")}, "finite number"),
        ({"rows": -1}, "greater than or equal to 0"),
        ({"extra": 1}, "Extra inputs"),
    ],
)
def test_a_commit_record_that_contradicts_itself_is_refused(
    job: StoredJob, changes: dict[str, Any], message: str
) -> None:
    path = job.attempt_file(0, attempt=ATTEMPT)
    fields = job.record(0, attempt=ATTEMPT, path=path).model_dump()
    with pytest.raises(ValidationError, match=message):
        CommitRecord(**(fields | changes))


@pytest.mark.parametrize("name", ["record_key", "data_key"])
def test_a_seal_cannot_name_a_key_outside_the_job(name: str) -> None:
    fields = {"record_key": "commits/r0000/00000000.json", "data_key": "data/x", name: "../x"}
    with pytest.raises(ValidationError, match="not a key of this job"):
        SealedShard(shard=0, sha256=SHA, samples=0, ok=0, errors=0, **fields)
