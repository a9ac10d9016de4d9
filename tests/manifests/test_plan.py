"""The plan: created once, consistent in itself, and the source of all seeds."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from manifests.errors import DamagedError, FingerprintError, MissingError
from manifests.hashing import canonical_json, hash64, sha256_hex
from manifests.plan import Plan, new_job_id, plan_hash, read_plan, sample_key, write_plan
from manifests.staged import StagedRow
from manifests.store import LocalStore
from tests.manifests.builders import StoredJob, make_job

ROW = StagedRow(row=4, id="id-4", prompt="a")


def test_a_plan_comes_back_as_it_was(job: StoredJob) -> None:
    assert read_plan(job.store) == job.plan


def test_a_job_without_a_plan_is_missing_one(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"plan.json is not in"):
        read_plan(LocalStore(tmp_path))


def test_the_first_plan_counts_and_a_second_of_the_same_job_gets_it(job: StoredJob) -> None:
    later = job.plan.model_copy(update={"created": "2027-01-01T00:00:00+00:00"})
    assert write_plan(job.store, later) == job.plan
    assert read_plan(job.store) == job.plan


def test_a_plan_of_other_settings_is_refused_by_field(job: StoredJob, tmp_path: Path) -> None:
    other = make_job(tmp_path / "other", sampling={"n": 7}).plan
    with pytest.raises(FingerprintError, match=r"sampling\.n was 2, is 7"):
        write_plan(job.store, other)


def test_a_damaged_plan_is_never_taken_for_an_absent_one(job: StoredJob) -> None:
    job.path("plan.json").write_bytes(b"{}")
    with pytest.raises(DamagedError, match=r"^plan.json: "):
        write_plan(job.store, job.plan)
    assert job.store.get("plan.json") == b"{}"


def test_the_plan_hash_is_over_the_canonical_json_of_all_fields(job: StoredJob) -> None:
    assert plan_hash(job.plan) == sha256_hex(canonical_json(job.plan))
    changed = job.plan.model_copy(update={"versions": {"spotbatch": "1"}})
    assert plan_hash(changed) != plan_hash(job.plan)


def change(path: tuple[str | int, ...], value: object) -> Callable[[Any], None]:
    """An edit of a plan's fields."""

    def edit(fields: Any) -> None:
        for name in path[:-1]:
            fields = fields[name]
        fields[path[-1]] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change(("shards", 1, "shard"), 2), "shard 1 of the shard table does not follow"),
        (change(("shards", 1, "first_row"), 4), "shard 1 of the shard table does not follow"),
        (change(("shards", 0, "part"), "input/part-00000009.parquet"), "not among the staged"),
        (change(("rows",), 6), "the shard table has 5 rows, the plan 6"),
        (change(("shards", 0, "rows"), 0), "greater than or equal to 1"),
        (change(("shards", 0, "seed"), 2**64), "less than 18446744073709551616"),
        (change(("job_id",), "../x"), "should match pattern"),
        (change(("version",), 2), "should be 1"),
        (change(("input", 0, "sha256"), "A" * 64), "should match pattern"),
        (change(("surprise",), 1), "Extra inputs"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(
    job: StoredJob, edit: Callable[[Any], None], message: str
) -> None:
    fields = json.loads(canonical_json(job.plan))
    edit(fields)
    with pytest.raises(ValidationError, match=message):
        Plan.model_validate(fields)


def test_shard_seeds_derive_from_the_job_seed_and_the_shard(tmp_path: Path) -> None:
    plan = make_job(tmp_path, seed={"value": 9}).plan
    assert [s.seed for s in plan.shards] == [hash64("shard", 9, 0), hash64("shard", 9, 1)]


def test_sample_keys_derive_from_shard_seed_row_and_sample(tmp_path: Path) -> None:
    plan = make_job(tmp_path, seed={"value": 9}).plan
    key = sample_key(plan, plan.shards[1], 1, ROW, 3)
    assert key == hash64("sample", hash64("shard", 9, 1), 1, 3)


def test_with_row_scope_sample_keys_do_not_depend_on_the_sharding(tmp_path: Path) -> None:
    plan = make_job(tmp_path, seed={"value": 9, "scope": "row"}).plan
    keys = {sample_key(plan, shard, row, ROW, 3) for shard in plan.shards for row in range(2)}
    assert keys == {hash64("row", 9, "id-4", 3)}


@pytest.mark.parametrize("scope", ["shard", "row"])
def test_a_row_with_a_seed_has_the_key_of_a_job_with_this_seed_and_row_scope(
    tmp_path: Path, scope: str
) -> None:
    plan = make_job(tmp_path / "a", seed={"value": 9, "scope": scope}).plan
    alone = make_job(tmp_path / "b", seed={"value": 5, "scope": "row"}).plan
    seeded = StagedRow(row=4, id="id-4", prompt="a", seed=5)
    key = sample_key(plan, plan.shards[1], 1, seeded, 2)
    assert key == sample_key(alone, alone.shards[0], 0, ROW, 2)


def test_a_job_id_names_fingerprint_place_and_time() -> None:
    fields = {"fingerprint": "f", "output_uri": "/o", "created": "t"}
    first = new_job_id(**fields)
    assert len(first) == 16
    assert first == new_job_id(**fields)
    assert all(new_job_id(**(fields | {name: "x"})) != first for name in fields)


def test_a_rows_index_counts_from_the_first_one_of_its_shard(job: StoredJob) -> None:
    second = job.plan.shards[1]
    assert second.first_row > 0
    assert [second.index_of(second.first_row + index) for index in (0, 1)] == [0, 1]
